import { join } from "node:path";
import type pg from "pg";
import { createFleet, type RelayFleet, type RelayProcess } from "../../e2e/relay-fleet.ts";
import { openStage, type Stage } from "../../e2e/stage.ts";
import { countPending, createAggregates } from "../../e2e/writer.ts";
import { headerText, readTopics } from "../../servers/kafka-reader.ts";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";
import type { PostgresVersion } from "../../servers/postgres-binaries.ts";
import { type ReplicatedPostgres, startReplicated } from "../../servers/postgres-standby.ts";
import { programPath } from "../../servers/program-path.ts";
import { until } from "../../servers/until.ts";
import { type EventWriter, startEventWriter } from "./event-writer.ts";
import { type KafkaStand, startKafkaStand } from "./kafka-stand.ts";
import { type ProvedOutbox, provedOutbox, type SourceKind } from "./proved-outbox.ts";

/** Ways to make a proof fail, to see that it can. The last one leaves the relays alone and blinds the reader. */
export type Sabotage = "at-least-once" | "forget-ledger" | "read-uncommitted";

export interface SceneOptions {
  readonly seed: number;
  readonly version: PostgresVersion;
  readonly brokers: 1 | 3;
  readonly relays: number;
  /** Short, so that a request which is kept back can come after the broker has given the transaction up. */
  readonly transactionTimeoutMs: number;
  /** Takes the guarantee away. Absent: exactly once, as it should be. */
  readonly sabotage?: Sabotage;
  /** With a standby, to which the database can fail over. */
  readonly replicated: boolean;
  /** Default: flag tables. */
  readonly source?: SourceKind;
  /** Connections of the application. */
  readonly writers?: number;
  /** Between the transactions of one connection. Default: 5. */
  readonly writePauseMs?: number;
}

/** A database, brokers behind proxies, relay processes between them, and an application that writes. */
export interface Scene extends AsyncDisposable {
  readonly options: SceneOptions;
  readonly stage: Stage;
  readonly pair: ReplicatedPostgres | null;
  readonly outbox: ProvedOutbox;
  /** The server that is written to: after a failover, the former standby. */
  readonly server: PostgresServer;
  readonly stand: KafkaStand;
  readonly fleet: RelayFleet;
  /** Those that are there. */
  readonly topics: readonly string[];
  /** Of the topic that events of a log are written for from the beginning: until then they park, with their keys. */
  createLateTopic(): Promise<void>;
  write(): EventWriter;
  /** Events that are not delivered: not marked in a flag table, or of a log not to be read at the broker. */
  pending(): Promise<number>;
  /** Events that the relays have marked as delivered. */
  deliveredCount(): Promise<number>;
}

const TOPICS = ["order.placed", "order.paid", "order.shipped"];
const LATE_TOPIC = "order.returned";
/** Keys that have events for it. Few: all that they have waits behind those. */
const LATE_KEYS = 6;
export const REQUEST_TIMEOUT_MS = 1_200;
const PARTITIONS = 4;
const LANES = 4;
const KEYS = 200;
const LEASE_MS = 2_500;
const END_MS_MAX = 120_000;

export async function openScene(options: SceneOptions): Promise<Scene> {
  await using started = new AsyncDisposableStack();
  const { version, source = "flag" } = options;
  const outbox = provedOutbox(source);
  const stand = started.use(await startKafkaStand(options.brokers));
  const pair = options.replicated ? started.use(await startReplicated({ version })) : null;
  const server = pair?.primary ?? started.use(await startPostgres({ version }));
  const place = {
    databaseUrl: (name?: string, user?: string, password?: string) =>
      (pair ?? server).databaseUrl(name, user, password),
    query: (sql: string) => server.query(sql),
  };
  const stage = started.use(await openStage(place, { database: "shop", tables: outbox.flagTables }));
  await outbox.create(stage);
  await createAggregates(stage.pool, KEYS);
  const topics: string[] = [];
  const createTopic = async (topic: string) => {
    await stand.createTopic(topic, PARTITIONS);
    topics.push(topic);
  };
  for (const topic of TOPICS) await createTopic(topic);
  const fleet = started.use(newFleet(options, stage, stand, outbox));
  for (let n = 1; n <= options.relays; n += 1) await fleet.start(`relay-${n}`);
  // What is written before the lanes of a log have begun would not be in the write-ahead log of its slot.
  if (source === "wal") await until("the log is read", () => fleet.told("LaneTaken").length > 0);
  const owned = started.move();
  return {
    ...{ options, stage, pair, outbox, stand, fleet, topics },
    createLateTopic: () => createTopic(LATE_TOPIC),
    get server() {
      return pair !== null && pair.proxy.targetPort === pair.standby.port ? pair.standby : server;
    },
    write: () =>
      startEventWriter({
        ...{ url: stage.url, outbox, types: TOPICS, keys: KEYS, seed: options.seed },
        ...{ connections: options.writers ?? 3, pauseMs: options.writePauseMs ?? 5 },
        ...(source === "flag" ? {} : { isAwkward: true, rare: { type: LATE_TOPIC, keys: LATE_KEYS } }),
      }),
    pending: () =>
      source === "flag"
        ? countPending(stage.pool, outbox.flagTables)
        : countMissing(stage.pool, stand.directBrokers, outbox, topics),
    async deliveredCount() {
      const [row] = await stage.sql<{ total: string }>(
        "select coalesce(sum(total_events_published), 0) as total from outbox_relay.relay_state",
      );
      return Number(row?.total);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Committed events that are not to be read at the broker, or of which the database says that something is left to do. */
export async function countMissing(
  pool: pg.Pool,
  directBrokers: string,
  outbox: ProvedOutbox,
  topics: readonly string[],
): Promise<number> {
  const rows = await outbox.rows(pool);
  const records = await readTopics(directBrokers, topics);
  const arrived = new Set(records.map((record) => headerText(record, "event-id") ?? ""));
  return [...rows].filter(([id, isDone]) => !isDone || !arrived.has(id)).length;
}

function newFleet(
  { sabotage, transactionTimeoutMs }: SceneOptions,
  stage: Stage,
  stand: KafkaStand,
  { source, tables }: ProvedOutbox,
): RelayFleet {
  const kafka = {
    brokers: stand.brokers,
    service: "proof",
    delivery: sabotage === "at-least-once" ? sabotage : "exactly-once",
    connectTimeoutMs: REQUEST_TIMEOUT_MS,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    transactionTimeoutMs,
  };
  return createFleet({
    databaseUrl: stage.relayUrl,
    script: programPath(join(import.meta.dirname, "relay-process.ts")),
    variables: { KAFKA: JSON.stringify(kafka), SABOTAGE: sabotage ?? "", SOURCE: source },
    tables,
    lanes: LANES,
    leaseMs: LEASE_MS,
    // Small batches: many transactions, and many moments at which one of them is open.
    limits: { batchSize: 25, inFlightEventsMax: 600, pageRows: 100 },
    timing: { leaseMarginMs: 500, publishTimeoutMs: 1_500, balanceMs: 250, pollIntervalMs: 100, circuitMaxMs: 2_000 },
  });
}

/** By SIGTERM. A relay that does not end by itself holds on to something, and that is a fault. */
export async function endInGoodOrder(relay: RelayProcess): Promise<void> {
  const ended = relay.terminate();
  ended.catch(() => {}); // awaited below, unless the process does not end
  await until(`${relay.name} has ended by itself`, () => !relay.isRunning, END_MS_MAX).catch((cause) => {
    const words = relay.told.slice(-15).map((event) => JSON.stringify(event));
    throw new Error(`${relay.name} does not end; its last words:\n${words.join("\n")}`, { cause });
  });
  await ended;
}

/** For a run that does not come to its end: who owns what, and what is held. */
export async function describeState({ stage, fleet, stand }: Scene): Promise<string> {
  const tables = ["instances", "lanes", "holds", "passed"].map(async (table) => {
    const rows = await stage.sql(`select to_jsonb(t)::text as row from outbox_relay.${table} t limit 30`);
    return rows.map((row) => `${table} ${JSON.stringify(row)}`);
  });
  const running = fleet.processes.filter(({ isRunning }) => isRunning);
  const words = running.flatMap(({ name, told }) => told.slice(-15).map((event) => `${name} ${JSON.stringify(event)}`));
  return [...(await Promise.all(tables)).flat(), `${stand.heldCount} requests kept back`, ...words].join("\n");
}
