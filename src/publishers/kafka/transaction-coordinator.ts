import { setTimeout as pauseMs } from "node:timers/promises";
import { Backoff } from "../../core/backoff.ts";
import { anyConnection, apiOf, connectionTo, type KafkaApi, type KafkaConnection } from "./kafka-client.ts";
import type { BrokerAddress, KafkaSettings } from "./kafka-config.ts";
import { CODE } from "./kafka-error-codes.ts";
import { answersIn, bothFailures, responseIn } from "./kafka-errors.ts";
import type { KafkaAccess } from "./ledger-metadata.ts";

/** The producer id and epoch of every request. Brokers reject requests with a lower epoch than the current one. */
export interface ProducerStamp {
  readonly producerId: bigint;
  readonly producerEpoch: number;
}

/** The partitions of a transaction by topic. */
export type PartitionsByTopic = ReadonlyMap<string, ReadonlySet<number>>;

/** The request was not sent, so it had no effect. */
export class NotSent extends Error {
  /** The broker that could not be reached; null: none could. */
  readonly broker: BrokerAddress | null;

  constructor(broker: BrokerAddress | null, cause: unknown) {
    super("the transaction coordinator could not be reached", { cause });
    this.broker = broker;
  }
}

interface FoundCoordinator {
  readonly coordinators: readonly BrokerAddress[];
}

interface AddedPartitions {
  readonly resultsByTransaction: readonly {
    readonly topicResults: readonly {
      readonly name: string;
      readonly resultsByPartition: readonly { readonly partitionErrorCode: number }[];
    }[];
  }[];
}

const TRANSACTION_KEY = 1;
/** Requests a new epoch unconditionally. Any other value claims to be the former producer and is rejected. */
const NO_PRODUCER: ProducerStamp = { producerId: -1n, producerEpoch: -1 };

/** The coordinator is busy while it writes the markers of the last transaction, usually for 1 to 20 ms. */
const BUSY_PAUSE_MS = { firstMs: 1, lastMs: 50 };
/** A bound for callers without a deadline of their own. */
const TIMEOUT_MS = 30_000;

/** Answers that mean "nothing was done, retry": at the same broker (BUSY), or after a new lookup. */
const BUSY: ReadonlySet<number> = new Set([CODE.CONCURRENT_TRANSACTIONS]);
const BUSY_OR_MOVED: ReadonlySet<number> = new Set([
  ...BUSY,
  CODE.COORDINATOR_LOAD_IN_PROGRESS,
  CODE.COORDINATOR_NOT_AVAILABLE,
  CODE.NOT_COORDINATOR,
]);
/** Answers by which the coordinator rejects a topic before it begins a transaction. */
const TOPIC_REFUSED: ReadonlySet<number> = new Set([CODE.UNKNOWN_TOPIC_OR_PARTITION, CODE.TOPIC_AUTHORIZATION_FAILED]);

/**
 * The coordinator of one transactional id, and the three requests that change its state.
 *
 * The client's own producer is not used: it retries unanswered requests, and such a request can arrive late and end the
 * next transaction. Here a request is retried only after an answer that nothing was done.
 */
export class TransactionCoordinator {
  readonly #access: KafkaAccess;
  readonly #id: string;
  #address: BrokerAddress | null = null;

  constructor(access: KafkaAccess, transactionalId: string) {
    this.#access = access;
    this.#id = transactionalId;
  }

  /**
   * Aborts or completes the open transaction of this id, waits until its markers are written, and returns a stamp with
   * a new epoch.
   */
  async init(): Promise<ProducerStamp> {
    const request = [
      this.#id,
      this.#access.settings.transactionTimeoutMs,
      NO_PRODUCER.producerId,
      NO_PRODUCER.producerEpoch,
    ];
    const { producerId, producerEpoch } = (await this.#ask("InitProducerId", request)) as ProducerStamp;
    return { producerId, producerEpoch };
  }

  /**
   * Begins a transaction with all of its partitions. Returns the error codes of rejected topics; then no transaction
   * was begun. Rejects with NotSent when the request was not sent, and with any other error when the result is unknown.
   */
  async begin(stamp: ProducerStamp, partitions: PartitionsByTopic): Promise<ReadonlyMap<string, number>> {
    const topics = [...partitions].map(([name, numbers]) => ({ name, partitions: [...numbers] }));
    try {
      await this.#ask("AddPartitionsToTxn", [[{ transactionalId: this.#id, ...stamp, topics, verifyOnly: false }]]);
      return new Map();
    } catch (error) {
      const refused = refusedTopics(error);
      if (refused.size === 0) throw error;
      return refused;
    }
  }

  /**
   * Commits or aborts the transaction. Only the broker that began it is asked. Another one may be a former coordinator
   * that froze and does not know yet that it was replaced: it would take the request for a retry of the last commit and
   * answer success without doing anything.
   */
  async end(stamp: ProducerStamp, isCommit: boolean): Promise<void> {
    await this.#ask("EndTxn", [this.#id, stamp.producerId, stamp.producerEpoch, isCommit], BUSY);
  }

  /** Retries after an answer that allows it; by default also at another broker, if the coordinator has moved. */
  async #ask(name: string, request: readonly unknown[], repeats = BUSY_OR_MOVED): Promise<unknown> {
    const giveUpMs = performance.now() + TIMEOUT_MS;
    const backoff = new Backoff(BUSY_PAUSE_MS);
    for (;;) {
      const [connection, api] = await this.#reach(name);
      try {
        return await api.async(connection, ...request);
      } catch (error) {
        if (!isOneOf(repeats, error) || performance.now() > giveUpMs) throw error;
        if (!isOneOf(BUSY, error)) this.#address = null;
        await pauseMs(backoff.nextMs());
      }
    }
  }

  async #reach(name: string): Promise<[KafkaConnection, KafkaApi]> {
    const { kafka, client } = this.#access;
    try {
      this.#address ??= await this.#find();
      const connection = await connectionTo(kafka, client, this.#address);
      // Later versions are for broker-to-broker requests and need a right on the whole cluster.
      const fixed = name === "AddPartitionsToTxn" ? (kafka.addPartitionsToTxnV3.api as unknown as KafkaApi) : null;
      return [connection, fixed ?? (await apiOf(kafka, client, name))];
    } catch (error) {
      const broker = this.#address;
      this.#address = null;
      throw new NotSent(broker, error);
    }
  }

  /** Finds the coordinator. A new cluster creates its coordinators only at the first request. */
  async #find(): Promise<BrokerAddress> {
    const { kafka, client } = this.#access;
    const giveUpMs = performance.now() + TIMEOUT_MS;
    let unanswered: unknown = null;
    for (let attempt = 0; ; attempt++) {
      let isAsked = false;
      try {
        const connection = await anyConnection(kafka, client, attempt);
        const api = await apiOf(kafka, client, "FindCoordinator");
        isAsked = true;
        const { coordinators } = (await api.async(connection, TRANSACTION_KEY, [this.#id])) as FoundCoordinator;
        const { host, port } = coordinators[0]!;
        return { host, port };
      } catch (error) {
        // This request has no effect, so a retry is safe, and another broker may answer.
        const isUnanswered = answersIn(error).length === 0;
        if (isUnanswered && unanswered !== null) throw bothFailures(unanswered, error);
        if (isUnanswered && isAsked && attempt === 0) unanswered = error;
        else if (!isOneOf(BUSY_OR_MOVED, error) || performance.now() > giveUpMs) throw error;
        await pauseMs(BUSY_PAUSE_MS.lastMs);
      }
    }
  }
}

/** The settings with only the broker that could not be reached, so that the reason names that broker. */
export function settingsOfAskedBroker(settings: KafkaSettings, error: unknown): KafkaSettings {
  const broker = error instanceof NotSent ? error.broker : null;
  return broker === null ? settings : { ...settings, brokers: [broker] };
}

/** Whether the broker answered with these codes only. */
function isOneOf(answers: ReadonlySet<number>, error: unknown): boolean {
  const codes = answersIn(error).map(({ code }) => code);
  return codes.length > 0 && codes.every((code) => answers.has(code));
}

/** The rejected topics, if topics are the only errors in the response; the other topics were "not attempted". */
function refusedTopics(error: unknown): Map<string, number> {
  const answer = responseIn(error) as Partial<AddedPartitions> | undefined;
  const refused = new Map<string, number>();
  for (const { name, resultsByPartition } of answer?.resultsByTransaction?.[0]?.topicResults ?? []) {
    for (const { partitionErrorCode: code } of resultsByPartition) {
      if (code === CODE.OPERATION_NOT_ATTEMPTED || code === CODE.NONE) continue;
      if (!TOPIC_REFUSED.has(code)) return new Map();
      refused.set(name, code);
    }
  }
  return refused;
}
