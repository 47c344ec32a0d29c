import { arrivalOf } from "../chaos/exactly-once/drain.ts";
import type { EventWriter } from "../chaos/exactly-once/event-writer.ts";
import { startEventWriter } from "../chaos/exactly-once/event-writer.ts";
import { noTransactionOpen } from "../chaos/exactly-once/kafka-stand.ts";
import { type ProvedOutbox, provedOutbox, type SourceKind } from "../chaos/exactly-once/proved-outbox.ts";
import { countMissing } from "../chaos/exactly-once/scene.ts";
import { judge, type Verdict } from "../chaos/exactly-once/verdict.ts";
import { WAL_PUBLICATION } from "../chaos/log-tables.ts";
import { COMMAND, type ServiceProcess, startService } from "../e2e/service-process.ts";
import { openStage, type Place, type Stage } from "../e2e/stage.ts";
import { countPending, createAggregates } from "../e2e/writer.ts";
import type { KafkaServer } from "../servers/kafka.ts";
import { readTopics } from "../servers/kafka-reader.ts";
import { until } from "../servers/until.ts";
import { guarded } from "./guard.ts";

export interface ServiceSceneOptions {
  readonly place: Place;
  readonly kafka: Pick<KafkaServer, "brokers" | "directBrokers" | "createTopic">;
  readonly seed: number;
  /** Default: flag tables. */
  readonly source?: SourceKind;
  /** Of every service. */
  readonly env?: Readonly<Record<string, string>>;
  readonly writers?: number;
  /** Between the transactions of one writer. */
  readonly writerPauseMs?: number;
}

/** The shipped command between a database and Kafka, exactly once, and an application that writes. */
export interface ServiceScene extends AsyncDisposable {
  readonly stage: Stage;
  readonly outbox: ProvedOutbox;
  readonly topics: readonly string[];
  readonly services: readonly ServiceProcess[];
  /** `outbox-relay run`. The prefix is put before the command. */
  start(env: Readonly<Record<string, string>>, prefix?: readonly string[]): ServiceProcess;
  /** Of the write-ahead log a service must run: what is written before its slot is made is not in it. */
  write(): Promise<EventWriter>;
  pending(): Promise<number>;
  /** Returns when so many more events are marked as delivered. */
  flow(events: number, timeoutMs?: number): Promise<void>;
  /** Ends the writer, waits until all is delivered, ends the services and reads everything back. */
  finish(writer: EventWriter, timeoutMs?: number): Promise<Verdict>;
}

const TOPICS = ["order.placed", "order.paid", "order.shipped"];
const PARTITIONS = 4;
const KEYS = 200;
const FLOW_MS_MAX = 90_000;
const DRAIN_MS_MAX = 180_000;
/** A transaction that lost its owner ends by the broker's timeout. */
const OPEN_MS_MAX = 120_000;

export const SOURCE_SETTINGS: Readonly<Record<SourceKind, Readonly<Record<string, string>>>> = {
  flag: { OUTBOX_SCHEMAS: "orders,billing" },
  managed: { OUTBOX_MANAGED: "shop.outbox" },
  wal: { OUTBOX_WAL: "shop.outbox_log", OUTBOX_WAL_PUBLICATION: WAL_PUBLICATION },
};

export async function openServiceScene(options: ServiceSceneOptions): Promise<ServiceScene> {
  const { kafka, source = "flag", seed } = options;
  await using started = new AsyncDisposableStack();
  const outbox = provedOutbox(source);
  const stage = started.use(await openStage(options.place, { database: "shop", tables: outbox.flagTables }));
  await outbox.create(stage);
  await createAggregates(stage.pool, KEYS);
  for (const topic of TOPICS) await kafka.createTopic(topic, { partitions: PARTITIONS });
  const services: ServiceProcess[] = [];
  const common = {
    ...{ DATABASE_URL: stage.relayUrl, OUTBOX_DESTINATION: `kafka://${kafka.brokers}`, SERVICE_NAME: "proof" },
    ...SOURCE_SETTINGS[source],
    ...options.env,
  };
  const pending = async () =>
    source === "flag"
      ? await countPending(stage.pool, outbox.flagTables)
      : await countMissing(stage.pool, kafka.directBrokers, outbox, TOPICS);
  const owned = started.move();
  return {
    ...{ stage, outbox, topics: TOPICS, services, pending },
    start(env, prefix = []) {
      const [program = COMMAND, ...args] = prefix.length === 0 ? [COMMAND, "run"] : [...prefix, COMMAND, "run"];
      const service = owned.use(guarded(startService(args, { ...common, ...env }, program)));
      services.push(service);
      return service;
    },
    async write() {
      const isReading = () => services.some(({ logs }) => logs(({ event }) => event === "LaneTaken").length > 0);
      if (source === "wal") await until("the log is read", isReading, FLOW_MS_MAX);
      return startEventWriter({
        ...{ url: stage.url, outbox, types: TOPICS, keys: KEYS, seed },
        ...{ connections: options.writers ?? 3, pauseMs: options.writerPauseMs ?? 20 },
      });
    },
    flow: (events, timeoutMs = FLOW_MS_MAX) => flow(stage, services, events, timeoutMs),
    async finish(writer, timeoutMs = DRAIN_MS_MAX) {
      await writer.stop();
      const isDrained = async () => (await pending()) === 0;
      await until("all events are delivered", isDrained, timeoutMs).catch((cause) => {
        throw new Error(`not all events are delivered:\n${lastWords(services)}`, { cause });
      });
      await endInGoodOrder(services);
      await noTransactionOpen(kafka.directBrokers, TOPICS, OPEN_MS_MAX);
      const arrivals = (await readTopics(kafka.directBrokers, TOPICS)).map(arrivalOf);
      return judge({ diary: writer.diary, rows: await outbox.rows(stage.pool), arrivals, eras: writer.eras });
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** What the relays have counted since the tables were made; undefined while the database does not answer. */
async function deliveredCount({ sql }: Stage): Promise<number | undefined> {
  const rows = await sql<{ total: string }>(
    "select coalesce(sum(total_events_published), 0) as total from outbox_relay.relay_state",
  ).catch(() => []);
  return rows[0] === undefined ? undefined : Number(rows[0].total);
}

async function flow(stage: Stage, services: readonly ServiceProcess[], events: number, timeoutMs: number) {
  const before = await until("the database answers", async () => {
    const count = await deliveredCount(stage);
    return count === undefined ? null : { count };
  });
  const hasMoved = async () => ((await deliveredCount(stage)) ?? 0) >= before.count + events;
  await until(`${events} events are delivered`, hasMoved, timeoutMs).catch((cause) => {
    throw new Error(`nothing moves any more:\n${lastWords(services)}`, { cause });
  });
}

export function lastWords(services: readonly ServiceProcess[]): string {
  return services.map((service) => `${service.stdout()}${service.stderr()}`.slice(-4_000)).join("\n\n");
}

/** SIGTERM: a service that was killed before has no code; one that ends with another code than 0 has a fault. */
export async function endInGoodOrder(services: readonly ServiceProcess[]): Promise<void> {
  for (const service of services) service.kill("SIGTERM");
  for (const service of services) {
    const { code, stderr } = await service.ended;
    if (code !== 0 && code !== null) throw new Error(`a service ended with ${code}:\n${stderr.slice(-4_000)}`);
  }
}
