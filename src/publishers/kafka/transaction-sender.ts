import { setTimeout as pauseMs } from "node:timers/promises";
import { apiOf, connectionTo } from "./kafka-client.ts";
import type { BrokerAddress } from "./kafka-config.ts";
import { CODE, meaningOf } from "./kafka-error-codes.ts";
import { encodeAhead, type ProduceAnswer, type ProduceRequest, produce } from "./kafka-produce.ts";
import type { Topics } from "./kafka-topics.ts";
import { describeLedger, type KafkaAccess } from "./ledger-metadata.ts";
import type { ProducerStamp } from "./transaction-coordinator.ts";
import type { TransactionBatch } from "./transaction-plan.ts";

/** Why a batch of an open transaction was not accepted. The transaction can still be aborted in any case. */
export type Refusal =
  | { readonly kind: "refused"; readonly batch: TransactionBatch; readonly answer: ProduceAnswer }
  /** Its leader could not be reached, so nothing was sent. */
  | { readonly kind: "unsent"; readonly batch: TransactionBatch; readonly error: unknown };

type BatchResult = Refusal | null;

/** Requests encoded ahead of time, by the broker that they go to. */
type Ahead = ReadonlyMap<string, { readonly batches: readonly TransactionBatch[]; readonly bytes: Buffer }>;

const NO_LEADER = "";

/** Pauses before retries of refused batches: a moving partition needs a moment until its new leader accepts writes. */
const PAUSES_MS = [20, 50, 150, 400, 800] as const;

/**
 * Sends the batches of one lane's transactions, with sequence numbers by which the brokers drop records that they
 * already have.
 */
export class TransactionSender {
  readonly #access: KafkaAccess;
  readonly #topics: Topics;
  readonly #transactionalId: string;
  readonly #stamp: ProducerStamp;
  readonly #slot: number;
  readonly #sequences = new Map<string, number>();
  #ledgerLeader: BrokerAddress | null = null;

  constructor(access: KafkaAccess, topics: Topics, transactionalId: string, stamp: ProducerStamp, slot: number) {
    this.#access = access;
    this.#topics = topics;
    this.#transactionalId = transactionalId;
    this.#stamp = stamp;
    this.#slot = slot;
  }

  /** Finds the ledger's leader before a transaction is begun. */
  async ready(): Promise<void> {
    if (this.#ledgerLeader === null) await this.#lookUp([this.#ledgerTopic]);
  }

  /** Encodes the requests for these batches while the coordinator has not answered yet. */
  ahead(batches: readonly TransactionBatch[]): Ahead {
    const { kafka } = this.#access;
    const groups = [...this.#byLeader(batches)].filter(([address]) => address !== NO_LEADER);
    return new Map(
      groups.map(([address, group]) => [
        address,
        { batches: group, bytes: encodeAhead(kafka, this.#request(group, 0)) },
      ]),
    );
  }

  /**
   * Sends one batch per partition. Returns the batches that the brokers refused, after a few retries where that may
   * help: a refused batch got an answer, so a retry cannot duplicate it. Rejects when a request got no answer.
   */
  async send(batches: readonly TransactionBatch[], ahead: Ahead = new Map()): Promise<readonly Refusal[]> {
    const giveUpMs = performance.now() + this.#access.settings.requestTimeoutMs;
    let refusals = await this.#sendOnce(batches, ahead);
    for (const waitMs of PAUSES_MS) {
      const mayHelp = refusals.length > 0 && refusals.every(isPassing);
      if (!mayHelp || performance.now() + waitMs > giveUpMs) break;
      await pauseMs(waitMs);
      const again = refusals.map(({ batch }) => batch);
      // If no broker answers this, the known leaders are used.
      await this.#lookUp(again.map(({ topic }) => topic)).catch(() => {});
      refusals = await this.#sendOnce(again, new Map());
    }
    return refusals;
  }

  async #sendOnce(batches: readonly TransactionBatch[], ahead: Ahead): Promise<Refusal[]> {
    const groups = [...this.#byLeader(batches)];
    // Await all, also after one failed: while a request is in flight, its effect is unknown.
    const sent = await Promise.allSettled(groups.map(([address, group]) => this.#sendTo(group, ahead.get(address))));
    const failed = sent.find((it) => it.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    return sent.flatMap((it) => (it as PromiseFulfilledResult<BatchResult[]>).value).filter((it) => it !== null);
  }

  /** Sends one request to the broker that leads all of the batches. */
  async #sendTo(batches: readonly TransactionBatch[], ahead: ReturnType<Ahead["get"]>): Promise<BatchResult[]> {
    const { kafka, client } = this.#access;
    const leader = this.#leaderOf(batches[0]!);
    if (leader === null) return batches.map((batch) => refusal(batch, CODE.LEADER_NOT_AVAILABLE));
    let connection: Awaited<ReturnType<typeof connectionTo>>;
    try {
      connection = await connectionTo(kafka, client, leader);
    } catch (error) {
      return batches.map((batch) => ({ kind: "unsent", batch, error }));
    }
    const { version } = await apiOf(kafka, client, "Produce");
    // Leaders may have changed since it was encoded.
    const isSame =
      ahead?.batches.length === batches.length && ahead.batches.every((batch, at) => batch === batches[at]);
    const answers = await produce(kafka, connection, this.#request(batches, version), isSame ? ahead.bytes : null);
    const byPlace = new Map(answers.map((answer) => [placeOf(answer), answer]));
    return batches.map((batch) => this.#judge(batch, byPlace.get(placeOf(batch))));
  }

  #request(batches: readonly TransactionBatch[], version: number): ProduceRequest {
    const { compression, requestTimeoutMs } = this.#access.settings;
    return {
      version,
      transactionalId: this.#transactionalId,
      ...this.#stamp,
      // Less than our own timeout, so that the broker can still report slow replicas.
      timeoutMs: Math.ceil(requestTimeoutMs * 0.75),
      compression,
      batches: batches.map((batch) => ({ ...batch, sequence: this.#sequences.get(placeOf(batch)) ?? 0 })),
    };
  }

  #byLeader(batches: readonly TransactionBatch[]): Map<string, TransactionBatch[]> {
    return Map.groupBy(batches, (batch) => {
      const leader = this.#leaderOf(batch);
      return leader === null ? NO_LEADER : `${leader.host}:${leader.port}`;
    });
  }

  #judge(batch: TransactionBatch, answer: ProduceAnswer | undefined): BatchResult {
    if (answer === undefined) throw new Error(`the broker's response lacks ${placeOf(batch)}`);
    const isThere = answer.code === CODE.NONE || answer.code === CODE.DUPLICATE_SEQUENCE_NUMBER;
    if (!isThere) return { kind: "refused", batch, answer };
    const place = placeOf(batch);
    // The brokers' sequence numbers wrap around in the same way.
    this.#sequences.set(place, ((this.#sequences.get(place) ?? 0) + batch.items.length) % 2 ** 31);
    return null;
  }

  /** The ledger is looked up separately, because a broker must not auto-create it. */
  async #lookUp(topics: readonly string[]): Promise<void> {
    const others = topics.filter((topic) => topic !== this.#ledgerTopic);
    if (others.length > 0) await this.#topics.lookUp(this.#access.client, others);
    if (others.length === topics.length) return;
    this.#ledgerLeader = (await describeLedger(this.#access)).partitions[this.#slot]?.leader ?? null;
  }

  #leaderOf({ topic, partition }: TransactionBatch): BrokerAddress | null {
    return topic === this.#ledgerTopic ? this.#ledgerLeader : this.#topics.leaderOf(topic, partition);
  }

  get #ledgerTopic(): string {
    return this.#access.settings.ledger.topic;
  }
}

function placeOf({ topic, partition }: { readonly topic: string; readonly partition: number }): string {
  return `${topic}:${partition}`;
}

function refusal(batch: TransactionBatch, code: number): Refusal {
  const { topic, partition } = batch;
  return { kind: "refused", batch, answer: { topic, partition, code, message: null, faults: [] } };
}

function isPassing(refusal: Refusal): boolean {
  return refusal.kind === "unsent" || meaningOf(refusal.answer.code).isPassing;
}
