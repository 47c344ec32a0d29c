import { setTimeout as pauseMs } from "node:timers/promises";
import { anyConnection, apiOf, connectionTo, type KafkaApi, type KafkaConnection } from "./kafka-client.ts";
import type { BrokerAddress, KafkaSettings } from "./kafka-config.ts";
import { CODE } from "./kafka-error-codes.ts";
import { answersIn, responseIn } from "./kafka-errors.ts";
import type { KafkaAccess } from "./ledger-place.ts";

/** What stamps every request of a producer. A higher epoch makes all requests with a lower one powerless. */
export interface ProducerStamp {
  readonly producerId: bigint;
  readonly producerEpoch: number;
}

/** The partitions of a transaction by topic. */
export type PartitionsByTopic = ReadonlyMap<string, ReadonlySet<number>>;

/** Nothing was sent, so nothing can have happened. */
export class NotSent extends Error {
  /** Who could not be reached; null: nobody could. */
  readonly broker: BrokerAddress | null;

  constructor(broker: BrokerAddress | null, cause: unknown) {
    super("the coordinator could not be asked", { cause });
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
/** Asks for a new epoch whatever was before. Any other number is a claim to be the former producer, and refused. */
const NOBODY: ProducerStamp = { producerId: -1n, producerEpoch: -1 };

/** While the end of the last transaction is being written everywhere, the coordinator says "busy"; for 1-20 ms mostly. */
const BUSY_PAUSE_MS_MIN = 1;
const BUSY_PAUSE_MS_MAX = 50;
/** A bound for callers without a deadline of their own. */
const PATIENCE_MS = 30_000;

/** Answers that say "nothing was done, ask again", and of which broker. */
const BUSY: ReadonlySet<number> = new Set([CODE.CONCURRENT_TRANSACTIONS]);
const MOVED: ReadonlySet<number> = new Set([
  CODE.COORDINATOR_LOAD_IN_PROGRESS,
  CODE.COORDINATOR_NOT_AVAILABLE,
  CODE.NOT_COORDINATOR,
]);
/** Answers by which the coordinator refuses a topic before it begins anything. */
const TOPIC_REFUSED: ReadonlySet<number> = new Set([CODE.UNKNOWN_TOPIC_OR_PARTITION, CODE.TOPIC_AUTHORIZATION_FAILED]);

/**
 * The broker that keeps the state of one transactional id, and the three requests that change it.
 *
 * The client's own producer is not used: it repeats requests that nobody answered, and such a request can arrive late
 * and end the next transaction. Here a request is repeated only after an answer that nothing was done.
 */
export class TransactionCoordinator {
  readonly #access: KafkaAccess;
  readonly #id: string;
  #address: BrokerAddress | null = null;

  constructor(access: KafkaAccess, transactionalId: string) {
    this.#access = access;
    this.#id = transactionalId;
  }

  /** Ends what is open under this id, waits until that is written everywhere, and returns a stamp with a new epoch. */
  async init(): Promise<ProducerStamp> {
    const request = [this.#id, this.#access.settings.transactionTimeoutMs, NOBODY.producerId, NOBODY.producerEpoch];
    const { producerId, producerEpoch } = (await this.#ask("InitProducerId", request)) as ProducerStamp;
    return { producerId, producerEpoch };
  }

  /**
   * Begins a transaction with all of its partitions. Returns the error code of each topic that is refused: then
   * nothing was begun. Rejects with NotSent when nothing was, and with anything else when nobody knows.
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

  /** Commits or aborts what was begun. */
  async end(stamp: ProducerStamp, isCommit: boolean): Promise<void> {
    await this.#ask("EndTxn", [this.#id, stamp.producerId, stamp.producerEpoch, isCommit]);
  }

  async #ask(name: string, request: readonly unknown[]): Promise<unknown> {
    const giveUpMs = performance.now() + PATIENCE_MS;
    for (let waitMs = BUSY_PAUSE_MS_MIN; ; waitMs = Math.min(waitMs * 2, BUSY_PAUSE_MS_MAX)) {
      const [connection, api] = await this.#reach(name);
      try {
        return await api.async(connection, ...request);
      } catch (error) {
        if (!isWorthWaiting(error) || performance.now() > giveUpMs) throw error;
        if (!answersIn(error).some(({ code }) => BUSY.has(code))) this.#address = null;
        await pauseMs(waitMs);
      }
    }
  }

  async #reach(name: string): Promise<[KafkaConnection, KafkaApi]> {
    const { kafka, client } = this.#access;
    try {
      this.#address ??= await this.#find();
      const connection = await connectionTo(kafka, client, this.#address);
      // Later versions are for brokers among themselves and need a right on the whole cluster.
      const fixed = name === "AddPartitionsToTxn" ? (kafka.addPartitionsToTxnV3.api as unknown as KafkaApi) : null;
      return [connection, fixed ?? (await apiOf(kafka, client, name))];
    } catch (error) {
      const broker = this.#address;
      this.#address = null;
      throw new NotSent(broker, error);
    }
  }

  /** On a fresh cluster the coordinators are only being made when the first one is asked for. */
  async #find(): Promise<BrokerAddress> {
    const { kafka, client } = this.#access;
    const giveUpMs = performance.now() + PATIENCE_MS;
    for (let attempt = 0; ; attempt++) {
      const connection = await anyConnection(kafka, client, attempt);
      const api = await apiOf(kafka, client, "FindCoordinator");
      try {
        const { coordinators } = (await api.async(connection, TRANSACTION_KEY, [this.#id])) as FoundCoordinator;
        const { host, port } = coordinators[0]!;
        return { host, port };
      } catch (error) {
        // To ask this twice does no harm, and another broker may answer.
        const isSilent = answersIn(error).length === 0 && attempt === 0;
        if (!isSilent && (!isWorthWaiting(error) || performance.now() > giveUpMs)) throw error;
        await pauseMs(BUSY_PAUSE_MS_MAX);
      }
    }
  }
}

/** The settings as if they named only the broker that could not be reached, for a reason that names it. */
export function settingsAsAsked(settings: KafkaSettings, error: unknown): KafkaSettings {
  const broker = error instanceof NotSent ? error.broker : null;
  return broker === null ? settings : { ...settings, brokers: [broker] };
}

function isWorthWaiting(error: unknown): boolean {
  const codes = answersIn(error).map(({ code }) => code);
  return codes.length > 0 && codes.every((code) => BUSY.has(code) || MOVED.has(code));
}

/** The topics at fault, when an answer says that topics were the only fault; the others were "not attempted". */
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
