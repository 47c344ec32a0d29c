import type { DestinationConfig } from "../config/destinations/destination-scheme.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import { type FoundTable, sourceName, TableFinder } from "../config/sources/find-tables.ts";
import { isLog } from "../config/sources/presets.ts";
import type { RedisStoreConfig } from "../config/sources/redis-store-config.ts";
import { withinTime } from "../core/clock.ts";
import { checkDestination } from "../operations/doctor/destination-check.ts";
import { examine } from "../operations/doctor/doctor.ts";
import type { DoctorDestination, Finding } from "../operations/doctor/finding.ts";
import type { Obstacle, Publisher } from "../ports/publisher.ts";
import type { Database } from "../postgres/pool.ts";
import { MESSAGE_SCHEMA } from "../sources/postgres/log/log-preset.ts";
import { configuredPipelines } from "./engine.ts";
import { redisTable } from "./redis-outbox-store.ts";
import { routedTopics } from "./routed-topics.ts";

/** A destination that does not answer within this time is reported as such. */
const ANSWER_TIMEOUT_MS = 15_000;
const CLOSE_MS = 2_000;

/** The result of an examination. */
interface Examined {
  readonly findings: readonly Finding[];
  /** How many tables and logs were checked. */
  readonly tables: number;
}

/**
 * Runs `doctor`'s checks on the database and the destinations of these settings. Throws when the database is
 * unreachable.
 */
export async function examineService(config: ServiceConfig, database: Database): Promise<Examined> {
  const listed = await new TableFinder(database, config).find();
  const found = [...new Map(listed.map((it) => [sourceName({ ...it, subscriber: null }), it])).values()];
  // The queue checks (marks and their indexes) do not apply to logs.
  const tables = found
    .filter(({ preset }) => !isLog(preset))
    .map(({ isThere, preset, schema, table }) => ({ schema, table, isThere, isOpenOutbox: preset === "openoutbox" }));
  await loadClients(config.destinations);
  const findings = await examine({
    database,
    configured: configuredPipelines(config, listed),
    columns: config.sources.columns,
    tables,
    managed: found.filter(({ preset }) => preset === "managed").map(({ schema, table }) => ({ schema, table })),
    wal: found
      .filter(({ preset }) => preset === "wal")
      .map(({ isDebezium, schema, table }) => ({ schema, table, isDebezium })),
    eventTables: found
      .filter(({ preset, schema }) => preset === "tail" || (preset === "wal" && schema !== MESSAGE_SCHEMA))
      .map(({ schema, table }) => ({ schema, table })),
    ...(config.logs.wal?.publication === undefined ? {} : { publication: config.logs.wal.publication }),
    hasLogs: found.some(({ preset }) => isLog(preset)),
    destinations: config.destinations.map((it) => doctorDestination(config, it, listed)),
    retentionMs: config.retentionMs,
  });
  return { findings: [...noDestination(config), ...findings], tables: found.length };
}

/** A missing destination is only a warning: everything else can be checked without one. */
function noDestination({ destinations }: ServiceConfig): readonly Finding[] {
  if (destinations.length > 0) return [];
  const fix =
    "Set KAFKA_BROKERS=host:port, RABBITMQ_HOST, or OUTBOX_DESTINATION; `outbox-relay run --help` lists them.";
  return [{ severity: "warning", check: "destination", what: "No destination is set yet", fix }];
}

/** Runs the checks that apply to an outbox in Redis, which has no tables. */
export async function examineRedisStore(config: ServiceConfig, outbox: RedisStoreConfig): Promise<readonly Finding[]> {
  const { name, url } = outbox;
  await loadClients(config.destinations);
  const { host, password, pathname, port, protocol, username } = new URL(url);
  const { redisPublisher } = await import("../publishers/redis/redis-publisher.ts");
  const { waitingTypes } = await import("../sources/redis/redis-counts.ts");
  const store = redisPublisher({
    hosts: [port === "" ? `${host}:6379` : host],
    database: Number(pathname.slice(1)),
    tls: protocol === "rediss:",
    ...(password === "" ? {} : { password: decodeURIComponent(password) }),
    ...(username === "" ? {} : { username: decodeURIComponent(username) }),
  });
  const examineStore = async (): Promise<readonly Finding[]> =>
    (await whileOpen(async () => store, examined)).map(({ reason, severity }) => ({
      severity,
      check: "store",
      what: reason,
      fix: "Correct OUTBOX_STORE or the settings of Redis, then run `outbox-relay doctor` again.",
    }));
  const table = redisTable(outbox);
  // The check of the store reports what keeps it from being read.
  const types = await waitingTypes({ url, name }).catch(() => []);
  const sources = [{ source: table, samples: types.map((type) => ({ type, headers: {} })) }];
  const destinations = config.destinations.map((it) =>
    checkDestination(doctorDestination(config, it, [table]), sources),
  );
  return (await Promise.all([examineStore(), ...destinations])).flat();
}

/** Loading a client blocks the event loop for a moment; a server that is checked meanwhile would seem slow. */
async function loadClients(destinations: readonly DestinationConfig[]): Promise<void> {
  // A missing client is reported where its destination is checked.
  await Promise.allSettled(destinations.map(async (destination) => (await destination.open()).close()));
}

/** `listed` has every table, and a log once for each subscriber. */
function doctorDestination(
  config: ServiceConfig,
  destination: DestinationConfig,
  listed: readonly FoundTable[],
): DoctorDestination {
  const { addresses, isExactlyOnce, missingTopics, name, topicFix } = destination;
  const queues = listed.filter(({ preset }) => !isLog(preset));
  const slots = Math.max(1, queues.length) * config.lanes;
  return {
    name,
    brokers: addresses,
    examine: () => whileOpen(() => destination.open(), examined),
    ...routedTopics(config, name, listed),
    ...(isExactlyOnce
      ? {
          examineTransactions: () =>
            whileOpen(
              () => destination.open(),
              async ({ transactions }) => (await transactions?.examine?.(slots)) ?? [],
            ),
        }
      : {}),
    ...(missingTopics === undefined ? {} : { missingTopics }),
    ...(topicFix === undefined ? {} : { topicFix }),
  };
}

async function examined(publisher: Publisher, signal: AbortSignal): Promise<readonly Obstacle[]> {
  return (await publisher.examine?.(signal)) ?? [];
}

/** Bounds both the work and the close: a server that hangs can block either. */
async function whileOpen<T>(
  open: () => Promise<Publisher>,
  work: (publisher: Publisher, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const publisher = await open();
  const timeout = new AbortController();
  const timeoutError = () => new Error(`no answer within ${ANSWER_TIMEOUT_MS / 1_000} s`);
  try {
    return await withinTime(work(publisher, timeout.signal), ANSWER_TIMEOUT_MS, timeout.signal, timeoutError);
  } finally {
    timeout.abort();
    const closed = publisher.close();
    await withinTime(closed, CLOSE_MS, new AbortController().signal, timeoutError).catch(() => {});
  }
}
