import { type FoundTable, sourceName, TableFinder } from "../config/find-tables.ts";
import { isLog } from "../config/presets.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import { logFigures } from "../operations/log-figures.ts";
import { openLogSource } from "../operations/log-source.ts";
import { createManaged, upkeepManaged } from "../operations/managed-upkeep.ts";
import { relayQuestions } from "../operations/overview/relay-figures.ts";
import type { QueueSource } from "../ports/queue-store.ts";
import { migrateUp, requireSchema } from "../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../postgres/pool.ts";
import { openOutboxSource } from "../sources/openoutbox/openoutbox-source.ts";
import { postgresSource } from "../sources/postgres/postgres-source.ts";
import type { OutboxStore, Remark } from "./outbox-store.ts";

/** What nobody has asked for yet is not heaped up. */
const REMARKS_MAX = 100;

/** Creates the managed outboxes that the settings name; those that were not there. */
export async function createAll(database: Database, { managed, named }: ServiceConfig["logs"]): Promise<string[]> {
  const created: string[] = [];
  for (const { preset, schema, table } of named) {
    if (preset !== "managed") continue;
    if (await createManaged(database, { ...managed, table: { schema, table } })) created.push(`${schema}.${table}`);
  }
  return created;
}

/** Each once, however many subscribers it has. */
function managedIn(tables: readonly FoundTable[]): readonly FoundTable[] {
  const managed = tables.filter(({ isThere, preset }) => preset === "managed" && isThere);
  return [...new Map(managed.map((table) => [sourceName({ ...table, subscriber: null }), table])).values()];
}

/** Tables of a database, beside the relay's own schema. */
export function postgresOutboxStore(config: ServiceConfig): OutboxStore {
  const database = openDatabase(config.database);
  const finder = new TableFinder(database, config);
  const remarks: Remark[] = [];
  const tell = (remark: Remark) => {
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
    source: (table) => sourceOf(database, config, table, tell),
    async upkeep(tables) {
      for (const table of managedIn(tables)) for (const it of await upkeepManaged(database, table)) tell(it);
      return remarks.splice(0);
    },
    questions: relayQuestions(database),
    logFigures: () => logFigures(database, config.retentionMs),
    close: () => database.close(),
  };
}

function sourceOf(
  database: Database,
  { logs, service, sources, subscribers }: ServiceConfig,
  found: FoundTable,
  tell: (remark: Remark) => void,
): QueueSource {
  const { isDebezium, preset } = found;
  const { claimLeaseMs, columns } = sources;
  const table = { schema: found.schema, table: found.table };
  if (isLog(preset)) {
    const own = subscribers.find(({ name }) => name === found.subscriber)?.start ?? null;
    const wal = { ...logs.wal, preset: isDebezium ? ("debezium" as const) : ("plain" as const) };
    const reader = { database, subscriber: found.subscriber, table, preset, columns, wal };
    return openLogSource({ ...reader, start: own ?? logs.start, lagMaxMs: logs.lagMaxMs, tell });
  }
  if (preset !== "openoutbox") return postgresSource({ database, table, columns });
  const lease = claimLeaseMs === null ? {} : { leaseMs: claimLeaseMs };
  return openOutboxSource({ database, table, relayId: service, ...lease });
}
