import type { DestinationConfig } from "../config/destinations/destination-scheme.ts";
import { TableFinder } from "../config/find-tables.ts";
import { isLog } from "../config/presets.ts";
import { filledRoute, restrictedTo } from "../config/routes-config.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import { examine } from "../operations/doctor/doctor.ts";
import type { DoctorDestination, Finding } from "../operations/doctor/finding.ts";
import type { Database } from "../postgres/pool.ts";
import { compileRoutes, type Routes } from "../routing/routes.ts";
import { MESSAGE_SCHEMA } from "../sources/postgres/log/log-preset.ts";

/** Brokers that do not answer in time are told as such. */
const RIGHTS_MS = 15_000;

interface Examined {
  readonly findings: readonly Finding[];
  /** How many tables and logs were looked at. */
  readonly tables: number;
}

/** The doctor's findings on what these settings name. Throws when the database cannot be reached. */
export async function examineService(config: ServiceConfig, database: Database): Promise<Examined> {
  const found = await new TableFinder(database, { ...config, subscribers: [] }).find();
  // What the doctor looks for in a queue, such as marks and their indexes, a log has no need of.
  const tables = found
    .filter(({ preset }) => !isLog(preset))
    .map(({ isThere, preset, schema, table }) => ({ schema, table, isThere, isOpenOutbox: preset === "openoutbox" }));
  const findings = await examine({
    database,
    columns: config.sources.columns,
    tables,
    managed: found.filter(({ preset }) => preset === "managed").map(({ schema, table }) => ({ schema, table })),
    wal: found.filter(({ preset }) => preset === "wal").map(({ schema, table }) => ({ schema, table })),
    eventTables: found
      .filter(({ preset, schema }) => preset === "tail" || (preset === "wal" && schema !== MESSAGE_SCHEMA))
      .map(({ schema, table }) => ({ schema, table })),
    ...(config.logs.wal?.publication === undefined ? {} : { publication: config.logs.wal.publication }),
    hasLogs: found.some(({ preset }) => isLog(preset)),
    destinations: config.destinations.map((it) => doctorDestination(config, it, tables.length)),
    retentionMs: config.retentionMs,
  });
  return { findings, tables: found.length };
}

function doctorDestination(config: ServiceConfig, destination: DestinationConfig, tables: number): DoctorDestination {
  const { addresses, isExactlyOnce, missingTopics, name, topicFix } = destination;
  const slots = Math.max(1, tables) * config.lanes;
  return {
    name,
    brokers: addresses,
    rulesFor: (source) => routesFor(config, source).filterFor(name),
    topicOf: (type, source) => topicOf(config, name, type, source),
    ...(isExactlyOnce ? { prepareTransactions: () => prepareTransactions(destination, slots) } : {}),
    ...(missingTopics === undefined ? {} : { missingTopics }),
    ...(topicFix === undefined ? {} : { topicFix }),
  };
}

interface SourceName {
  readonly schema: string;
  readonly table: string;
}

function routesFor({ destinations, routes, sources }: ServiceConfig, source: SourceName): Routes {
  const filled = restrictedTo(sources.only, routes).map((route) => filledRoute(route, source, unknownTopic));
  return compileRoutes(
    filled,
    destinations.map(({ name }) => name),
  );
}

/** Null when the type goes elsewhere, or when more than the type decides. */
function topicOf(config: ServiceConfig, destination: string, type: string, source: SourceName): string | null {
  const route = routesFor(config, source).routeOfType(type, destination);
  if (route === undefined) return null;
  const nothing = { key: null, payload: Buffer.alloc(0), headers: {}, correlationId: null, createdAt: null };
  try {
    return route.topic === undefined ? type : route.topic({ id: "", type, ...nothing });
  } catch {
    return null;
  }
}

function unknownTopic(what: string): never {
  throw new Error(`${what} needs more than the type`);
}

/** What the service does before it starts: it makes the ledger if it is missing, and finds out what it may do. */
async function prepareTransactions(destination: DestinationConfig, slots: number): Promise<void> {
  const publisher = await destination.open();
  const { promise: silence, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${RIGHTS_MS / 1_000} s`)), RIGHTS_MS);
  try {
    await Promise.race([publisher.transactions?.prepare(slots), silence]);
  } finally {
    clearTimeout(timer);
    await publisher.close();
  }
}
