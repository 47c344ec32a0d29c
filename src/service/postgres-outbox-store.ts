import type { ServiceConfig } from "../config/service-config.ts";
import { type FoundTable, sourceName, TableFinder } from "../config/sources/find-tables.ts";
import { isLog } from "../config/sources/presets.ts";
import { isRelayError, reasonOf } from "../core/errors.ts";
import { logFigures } from "../operations/logs/log-list.ts";
import { openLogSource } from "../operations/logs/log-source.ts";
import { createManaged, requireUpkeep, upkeepManaged } from "../operations/logs/managed-upkeep.ts";
import { relayQuestions } from "../operations/overview/relay-figures.ts";
import { orphanRemarks } from "../operations/pipelines/orphans.ts";
import type { QueueSource } from "../ports/queue-store.ts";
import { migrateUp, requireSchema } from "../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../postgres/pool.ts";
import { openOutboxSource } from "../sources/postgres/openoutbox/openoutbox-source.ts";
import { postgresSource } from "../sources/postgres/postgres-source.ts";
import { configuredPipelines } from "./engine.ts";
import type { OutboxStore, Remark } from "./outbox-store.ts";

/** Bound for remarks that no caller has collected yet. */
const REMARKS_MAX = 100;

/** Creates the managed outboxes that the settings name. Returns the names of the new ones. */
export async function createAll(database: Database, { managed, named }: ServiceConfig["logs"]): Promise<string[]> {
  const created: string[] = [];
  for (const { preset, schema, table } of named) {
    if (preset !== "managed") continue;
    if (await createManaged(database, { ...managed, table: { schema, table } })) created.push(`${schema}.${table}`);
  }
  return created;
}

/** Each managed outbox once, however many subscribers it has. */
function managedIn(tables: readonly FoundTable[]): readonly FoundTable[] {
  const managed = tables.filter(({ isThere, preset }) => preset === "managed" && isThere);
  return [...new Map(managed.map((table) => [sourceName({ ...table, subscriber: null }), table])).values()];
}

/** Checks the rights for the upkeep at the first run, and not only on the day on which the partitions run out. */
async function runUpkeep(database: Database, table: FoundTable, tried: Set<string>): Promise<readonly Remark[]> {
  const name = `${table.schema}.${table.table}`;
  try {
    if (!tried.has(name)) await requireUpkeep(database, table);
    tried.add(name);
    return await upkeepManaged(database, table);
  } catch (error) {
    tried.delete(name);
    return [upkeepFailed(table, error)];
  }
}

/** One failing outbox does not stop the others. Database outages are rethrown: every reader reports those. */
function upkeepFailed(table: FoundTable, error: unknown): Remark {
  if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE" || error.code === "DATABASE_BUSY") throw error;
  const [why = "", fix = ""] = reasonOf(error).split(/ \[[A-Z_]+\] /);
  const what = `The upkeep of ${table.schema}.${table.table} fails, so it will run out of partitions: ${why}`;
  return { severity: "error", what, fix: `${fix} \`outbox-relay doctor\` checks it.`, isFailure: true };
}

/** The store for outbox tables in a Postgres database, with the relay's own schema beside them. */
export function postgresOutboxStore(config: ServiceConfig): OutboxStore {
  const database = openDatabase(config.database);
  const finder = new TableFinder(database, config);
  const remarks: Remark[] = [];
  const tried = new Set<string>();
  const report = (remark: Remark) => {
    if (remarks.length < REMARKS_MAX) remarks.push(remark);
  };
  return {
    async ping() {
      await database.pool.query("select 1");
    },
    migrate: async () => [
      ...(await migrateUp(database)).map(({ name }) => name),
      ...(await createAll(database, config.logs)),
    ],
    requireFit: () => requireSchema(database),
    find: () => finder.find(),
    source: (table) => sourceOf(database, config, table, report),
    async upkeep(tables) {
      for (const table of managedIn(tables)) {
        for (const it of await runUpkeep(database, table, tried)) report(it);
      }
      for (const it of await orphansOf(database, config, tables)) report(it);
      return remarks.splice(0);
    },
    questions: relayQuestions(database),
    logFigures: () => logFigures(database, config.retentionMs),
    close: () => database.close(),
  };
}

async function orphansOf(database: Database, config: ServiceConfig, tables: readonly FoundTable[]) {
  // A relay for some types does not know the pipelines of the others.
  if (config.sources.only.length > 0) return [];
  const target = { database, columns: config.sources.columns };
  return await orphanRemarks(target, configuredPipelines(config, tables)).catch((error: unknown) => {
    // The sources report a database that does not answer.
    if (isRelayError(error)) return [];
    throw error;
  });
}

function sourceOf(
  database: Database,
  { instanceName, logs, sources, subscribers }: ServiceConfig,
  found: FoundTable,
  report: (remark: Remark) => void,
): QueueSource {
  const { isDebezium, preset } = found;
  const { claimLeaseMs, columns } = sources;
  const table = { schema: found.schema, table: found.table };
  if (isLog(preset)) {
    const own = subscribers.find(({ name }) => name === found.subscriber)?.start ?? null;
    const wal = { ...logs.wal, preset: isDebezium ? ("debezium" as const) : ("plain" as const) };
    const reader = { database, subscriber: found.subscriber, table, preset, columns, wal };
    return openLogSource({ ...reader, start: own ?? logs.start, lagMaxMs: logs.lagMaxMs, onFinding: report });
  }
  if (preset !== "openoutbox") return postgresSource({ database, table, columns });
  const lease = claimLeaseMs === null ? {} : { leaseMs: claimLeaseMs };
  return openOutboxSource({ database, table, relayId: instanceName, ...lease });
}
