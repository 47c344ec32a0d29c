import type { LaneAddress, LaneTransactions, Transactions } from "../../ports/transactions.ts";
import { destroyClient, type Kafka, loadKafka, openClient } from "./kafka-client.ts";
import { BatchLimits, type KafkaSettings } from "./kafka-config.ts";
import { GivenUp, KafkaLaneTransactions, type LaneContext, untilAborted } from "./kafka-lane-transactions.ts";
import { Topics } from "./kafka-topics.ts";
import type { KafkaAccess } from "./ledger-metadata.ts";
import { transactionalId } from "./ledger-record.ts";
import { prepareLedger } from "./ledger-topic.ts";
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
    const access = this.#open(await loadKafka());
    try {
      if (!this.#isAllowed) await probe(access);
      this.#isAllowed = true;
      await prepareLedger(access, slots);
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
