import { type Clock, systemClock } from "../../core/clock.ts";
import { rotated } from "../../core/rotated.ts";
import {
  anyConnection,
  apiOf,
  connectionTo,
  destroyClient,
  type Kafka,
  type KafkaClient,
  loadKafka,
  openClient,
} from "./kafka-client.ts";
import { type BrokerAddress, type KafkaPublisherOptions, type KafkaSettings, kafkaSettings } from "./kafka-config.ts";
import { CODE, describeCode } from "./kafka-error-codes.ts";
import { responseIn } from "./kafka-errors.ts";

/** A topic's partitions. */
export interface TopicInfo {
  /** The leader of each partition; null while it has none. */
  readonly leaders: readonly (BrokerAddress | null)[];
}

/** Why a topic cannot be written to, as reported by the broker. */
export interface TopicFailure {
  readonly code: number;
  readonly message: string | null;
}

interface MetadataResponse {
  readonly brokers: readonly (BrokerAddress & { readonly nodeId: number })[];
  readonly controllerId: number;
  readonly topics: readonly {
    readonly name: string | null;
    readonly errorCode: number;
    readonly partitions: readonly { readonly partitionIndex: number; readonly leaderId: number }[];
  }[];
}

interface CreateTopicsResponse {
  readonly topics: readonly {
    readonly name: string;
    readonly errorCode: number;
    readonly errorMessage: string | null;
  }[];
}

/** After this time a topic is looked up again: partitions may have been added. */
const AGE_MAX_MS = 30_000;

/** A failure within this time is a broken connection and not a hanging broker: one more attempt costs little. */
export const QUICK_FAILURE_MS = 500;
const PAUSE_MS = 50;

/** Bounds the memory: names are remembered only to save time. */
const GIVEN_UP_MAX = 1_000;

const MISSING: TopicFailure = { code: CODE.UNKNOWN_TOPIC_OR_PARTITION, message: null };

/** The topic metadata, shared by all connections of a publisher. */
export class Topics {
  readonly #kafka: Kafka;
  readonly #settings: KafkaSettings;
  readonly #clock: Clock;
  readonly #known = new Map<string, TopicInfo & { readonly untilMs: number }>();
  readonly #givenUp = new Set<string>();
  #brokers: readonly BrokerAddress[] = [];
  #first: string | null = null;

  constructor(kafka: Kafka, settings: KafkaSettings, clock: Clock = systemClock) {
    this.#kafka = kafka;
    this.#settings = settings;
    this.#clock = clock;
  }

  known(topic: string): TopicInfo | null {
    const info = this.#known.get(topic);
    return info !== undefined && info.untilMs > this.#clock.monotonicMs() ? info : null;
  }

  /** Null while the partition has no leader or is unknown. */
  leaderOf(topic: string, partition: number): BrokerAddress | null {
    return this.#known.get(topic)?.leaders[partition] ?? null;
  }

  /** True for a topic whose creation was waited for without success: it is looked up again, but without a wait. */
  isGivenUp(topic: string): boolean {
    return this.#givenUp.has(topic);
  }

  giveUp(topic: string): void {
    if (this.#givenUp.size >= GIVEN_UP_MAX) this.#givenUp.clear();
    this.#givenUp.add(topic);
  }

  /** The configured and the discovered brokers, in the order in which to try them. */
  brokers(): readonly BrokerAddress[] {
    const all = new Map([...this.#settings.brokers, ...this.#brokers].map((it) => [keyOf(it), it]));
    const from = [...all.keys()].indexOf(this.#first ?? "");
    return rotated([...all.values()], Math.max(0, from));
  }

  /**
   * Call it when no broker in this order answered: the next search starts at another one, unless a concurrent call has
   * already changed the order.
   */
  tryOthers(order: readonly BrokerAddress[]): void {
    const [first, second = first] = order;
    if (first === undefined || second === undefined || keyOf(this.brokers()[0]!) !== keyOf(first)) return;
    this.#first = keyOf(second);
  }

  /** Forces a new lookup before the topic is used again. */
  forget(topic: string): void {
    this.#known.delete(topic);
  }

  /**
   * Looks up these topics, and creates missing ones if the settings say so. Returns the topics that cannot be written
   * to now. Rejects when no broker answers.
   */
  async lookUp(client: KafkaClient, topics: Iterable<string>): Promise<ReadonlyMap<string, TopicFailure>> {
    const wanted = [...new Set(topics)];
    const startedMs = this.#clock.monotonicMs();
    try {
      return await this.#lookUpOnce(client, wanted);
    } catch (error) {
      if (client.closed || this.#clock.monotonicMs() - startedMs > QUICK_FAILURE_MS) throw error;
      await this.#clock.sleep(PAUSE_MS);
      return await this.#lookUpOnce(client, wanted);
    }
  }

  async #lookUpOnce(client: KafkaClient, wanted: readonly string[]): Promise<ReadonlyMap<string, TopicFailure>> {
    const response = await this.#metadata(client, wanted);
    const failures = this.#learn(response);
    for (const topic of wanted) {
      if (!failures.has(topic) && this.known(topic) === null) failures.set(topic, MISSING);
    }
    const missing = wanted.filter((topic) => failures.get(topic)?.code === CODE.UNKNOWN_TOPIC_OR_PARTITION);
    if (missing.length === 0 || this.#settings.creation === null) return failures;
    const uncreated = await this.#create(client, response, missing);
    return new Map([...failures, ...uncreated]);
  }

  async #metadata(client: KafkaClient, topics: readonly string[]): Promise<MetadataResponse> {
    const connection = await anyConnection(this.#kafka, client);
    const api = await apiOf(this.#kafka, client, "Metadata");
    return answered(api.async(connection, topics, this.#settings.autoCreate, false));
  }

  #learn({ brokers, topics }: MetadataResponse): Map<string, TopicFailure> {
    const addresses = new Map(brokers.map(({ nodeId, host, port }) => [nodeId, { host, port }]));
    this.#brokers = [...addresses.values()];
    const failures = new Map<string, TopicFailure>();
    const untilMs = this.#clock.monotonicMs() + AGE_MAX_MS;
    for (const { name, errorCode, partitions } of topics) {
      if (name === null) continue;
      if (errorCode !== CODE.NONE || partitions.length === 0) {
        this.#known.delete(name);
        failures.set(name, { code: errorCode === CODE.NONE ? CODE.LEADER_NOT_AVAILABLE : errorCode, message: null });
        continue;
      }
      const leaders: (BrokerAddress | null)[] = Array(partitions.length).fill(null);
      for (const { partitionIndex, leaderId } of partitions) leaders[partitionIndex] = addresses.get(leaderId) ?? null;
      this.#known.set(name, { leaders, untilMs });
      this.#givenUp.delete(name);
    }
    return failures;
  }

  /** Creates topics. A created topic still counts as a failure until its leaders are elected. */
  async #create(
    client: KafkaClient,
    { brokers, controllerId }: MetadataResponse,
    topics: readonly string[],
  ): Promise<Map<string, TopicFailure>> {
    const controller = brokers.find(({ nodeId }) => nodeId === controllerId) ?? brokers[0]!;
    const connection = await connectionTo(this.#kafka, client, controller);
    const api = await apiOf(this.#kafka, client, "CreateTopics");
    const { partitions = -1, replicationFactor = -1 } = this.#settings.creation ?? {};
    const wanted = topics.map((name) => ({
      name,
      numPartitions: partitions,
      replicationFactor,
      assignments: [],
      configs: [],
    }));
    const request = api.async(connection, wanted, this.#settings.requestTimeoutMs, false);
    const { topics: created } = await answered<CreateTopicsResponse>(request);
    return new Map(
      created.map(({ name, errorCode, errorMessage }) => {
        const exists = errorCode === CODE.NONE || errorCode === CODE.TOPIC_ALREADY_EXISTS;
        return [
          name,
          exists ? { code: CODE.LEADER_NOT_AVAILABLE, message: null } : { code: errorCode, message: errorMessage },
        ];
      }),
    );
  }
}

function keyOf({ host, port }: BrokerAddress): string {
  return `${host}:${port}`;
}

/** The client rejects when any part of a response has an error; the response has a result for each part. */
async function answered<T>(request: Promise<unknown>): Promise<T> {
  try {
    return (await request) as T;
  } catch (error) {
    const response = responseIn(error);
    if (response === undefined) throw error;
    return response as T;
  }
}

/** The topics that cannot be written to, and why. Creates none. */
export async function missingTopics(
  options: KafkaPublisherOptions,
  topics: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const kafka = await loadKafka();
  const settings = { ...kafkaSettings(options), creation: null, autoCreate: false };
  const client = openClient(kafka, settings);
  try {
    const failures = await new Topics(kafka, settings).lookUp(client, topics);
    return new Map([...failures].map(([topic, { code, message }]) => [topic, message ?? describeCode(code)]));
  } finally {
    await destroyClient(client);
  }
}
