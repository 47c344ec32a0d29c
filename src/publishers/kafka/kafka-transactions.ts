import type { LaneAddress, LaneTransactions, Transactions } from "../../ports/transactions.ts";
import { anyConnection, apiOf, destroyClient, type Kafka, loadKafka, openClient } from "./kafka-client.ts";
import { BatchLimits, type KafkaSettings } from "./kafka-config.ts";
import { CODE } from "./kafka-error-codes.ts";
import { answersIn } from "./kafka-errors.ts";
import { GivenUp, KafkaLaneTransactions, type LaneContext, untilAborted } from "./kafka-lane-transactions.ts";
import { Topics } from "./kafka-topics.ts";
import type { KafkaAccess } from "./ledger-metadata.ts";
import { transactionalId } from "./ledger-record.ts";
import { examineLedger, prepareLedger } from "./ledger-topic.ts";
import { TransactionCoordinator } from "./transaction-coordinator.ts";
import { RecordCounts } from "./transaction-outcomes.ts";
import { transactionsFault } from "./transaction-rights.ts";

/** Kafka's transactions with a compacted topic as the ledger. */
export function kafkaTransactions(settings: KafkaSettings): Transactions & { close(): Promise<void> } {
  return new KafkaTransactions(settings);
}

class KafkaTransactions implements Transactions {
  readonly ringSize: number;
  readonly #settings: KafkaSettings;
  readonly #counts = new RecordCounts();
  readonly #limits = new BatchLimits();
  readonly #lanes = new Set<LaneTransactions>();
  readonly #preparing = new Map<number, Promise<void>>();
  readonly #closed = new AbortController();
  #topics: Topics | null = null;
  #isAllowed = false;
  #failures = 0;

  constructor(settings: KafkaSettings) {
    this.#settings = settings;
    this.ringSize = settings.ledger.ringSize;
  }

  /** Several lanes prepare at the same time: they share one request. */
  prepare(slots: number): Promise<void> {
    const under = this.#preparing.get(slots);
    if (under !== undefined) return under;
    const preparing = this.#prepare(slots).finally(() => this.#preparing.delete(slots));
    this.#preparing.set(slots, preparing);
    return preparing;
  }

  async examine(slots: number): Promise<readonly string[]> {
    return await this.#ask(async (access) => {
      await askForRights(access);
      return await examineLedger(access, slots);
    });
  }

  async fence(lane: LaneAddress, signal: AbortSignal): Promise<LaneTransactions> {
    const kafka = await loadKafka();
    const access = this.#open(kafka);
    const coordinator = new TransactionCoordinator(access, transactionalId(this.#settings.service, lane));
    try {
      // Never retried without an answer: the next fence gets a higher epoch, and a late request of this one could at
      // worst fence that owner once more.
      const stamp = await untilAborted([signal, this.#closed.signal], () => coordinator.init());
      const transactions = new KafkaLaneTransactions(access, this.#context(kafka), lane, coordinator, stamp);
      this.#lanes.add(transactions);
      return transactions;
    } catch (error) {
      this.#failures += 1;
      await destroyClient(access.client);
      throw error instanceof GivenUp ? error : transactionsFault(access, error);
    }
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.all([...this.#lanes].map((lane) => lane.close()));
  }

  async #prepare(slots: number): Promise<void> {
    await this.#ask(async (access) => {
      if (!this.#isAllowed) await probe(access);
      this.#isAllowed = true;
      await prepareLedger(access, slots);
    });
  }

  async #ask<T>(work: (access: KafkaAccess) => Promise<T>): Promise<T> {
    const access = this.#open(await loadKafka());
    try {
      return await work(access);
    } catch (error) {
      this.#failures += 1;
      throw transactionsFault(access, error);
    } finally {
      await destroyClient(access.client);
    }
  }

  /** A broker that accepts connections may still hang: after each failure the search starts at another one. */
  #open(kafka: Kafka): KafkaAccess {
    const brokers = this.#settings.brokers.map((_, at, all) => all[(at + this.#failures) % all.length]!);
    return { kafka, client: openClient(kafka, { ...this.#settings, brokers }), settings: this.#settings };
  }

  #context(kafka: Kafka): LaneContext {
    this.#topics ??= new Topics(kafka, this.#settings);
    const closed = (lane: LaneTransactions) => void this.#lanes.delete(lane);
    return { topics: this.#topics, limits: this.#limits, counts: this.#counts, closed };
  }
}

/** Only using a transactional id shows whether the user has the right to. This id belongs to no lane. */
async function probe(access: KafkaAccess): Promise<void> {
  await new TransactionCoordinator(access, `${access.settings.service}.probe`).init();
}

/**
 * Ends a transaction that this id, which belongs to no lane, never began: the broker checks the rights first and changes
 * nothing. A search for the coordinator would create its topic in a new cluster.
 */
async function askForRights({ client, kafka, settings }: KafkaAccess): Promise<void> {
  const api = await apiOf(kafka, client, "EndTxn");
  const answer = api.async(await anyConnection(kafka, client), `${settings.service}.examination`, -1n, -1, false);
  await answer.catch((error: unknown) => {
    const codes = answersIn(error).map(({ code }) => code);
    if (codes.length === 0 || codes.includes(CODE.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)) throw error;
  });
}
