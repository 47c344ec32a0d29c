import type { KafkaRequest, TransactionRequestName } from "./kafka-proxy-wire.ts";

type Transaction = {
  isOpen: boolean;
  /** The port at the client's end of the connection over which it was opened. */
  clientPort: number;
  /** Requests that went to a broker. */
  sent: number;
  /** The port of the broker that last began or ended one. */
  coordinatorPort: number;
};

export type LateCounts = {
  /** Requests that reached a broker after their client was gone. */
  readonly late: number;
  /** Those of them that a newer request with the same transactional id had overtaken. */
  readonly overtaken: number;
  readonly byName: Readonly<Partial<Record<TransactionRequestName, number>>>;
  /** Late requests of a transaction's start or end that the broker said yes to. */
  readonly accepted: number;
  /** Requests that were kept back for so long that their broker died first. */
  readonly perished: number;
};

/** What is known of the transactions of all clients, over the proxies of all brokers. */
export class TransactionWatch {
  readonly #transactions = new Map<string, Transaction>();
  readonly #late: Partial<Record<TransactionRequestName, number>> = {};
  #overtaken = 0;
  #accepted = 0;
  #perished = 0;
  #coordinatorMoves = 0;

  /** How often another broker than before said yes to the start or the end of a transaction. */
  get coordinatorMoves(): number {
    return this.#coordinatorMoves;
  }

  get lateCounts(): LateCounts {
    const late = Object.values(this.#late).reduce((sum, count) => sum + count, 0);
    const counts = { overtaken: this.#overtaken, accepted: this.#accepted, perished: this.#perished };
    return { late, byName: { ...this.#late }, ...counts };
  }

  /** Requests of this transactional id that have gone to a broker so far. */
  sentCount(transactionalId: string): number {
    return this.#transactions.get(transactionalId)?.sent ?? 0;
  }

  /** The transactional ids with a transaction that these connections opened and that has not ended. */
  openOver(clientPorts: ReadonlySet<number>): string[] {
    return [...this.#transactions]
      .filter(([, { isOpen, clientPort }]) => isOpen && clientPorts.has(clientPort))
      .map(([id]) => id);
  }

  sent({ name, transactionalId }: KafkaRequest, clientPort: number): void {
    if (name === null) return;
    const transaction = this.#of(transactionalId);
    transaction.sent += 1;
    // Only with this one: it is sent when the coordinator has agreed to all partitions.
    if (name === "Produce") Object.assign(transaction, { isOpen: true, clientPort });
  }

  sentLate({ name, transactionalId }: KafkaRequest, sentCountAtArrival: number): void {
    if (name === null) return;
    const transaction = this.#of(transactionalId);
    if (transaction.sent > sentCountAtArrival) this.#overtaken += 1;
    transaction.sent += 1;
    this.#late[name] = (this.#late[name] ?? 0) + 1;
  }

  answered(
    { name, transactionalId }: KafkaRequest,
    errorCode: number | undefined,
    { wasLate, brokerPort }: { readonly wasLate: boolean; readonly brokerPort: number },
  ): void {
    if (name === null || errorCode !== 0) return;
    const transaction = this.#of(transactionalId);
    if (![0, brokerPort].includes(transaction.coordinatorPort)) this.#coordinatorMoves += 1;
    Object.assign(transaction, { isOpen: false, coordinatorPort: brokerPort });
    if (wasLate) this.#accepted += 1;
  }

  perished(): void {
    this.#perished += 1;
  }

  #of(transactionalId: string): Transaction {
    const known = this.#transactions.get(transactionalId);
    if (known !== undefined) return known;
    const fresh = { isOpen: false, clientPort: 0, sent: 0, coordinatorPort: 0 };
    this.#transactions.set(transactionalId, fresh);
    return fresh;
  }
}
