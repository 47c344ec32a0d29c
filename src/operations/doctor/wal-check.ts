import { displayTable, quoteIdentifier, quoteLiteral, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Row } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { MESSAGE_SCHEMA } from "../../sources/postgres/log/log-preset.ts";
import {
  columnsLeftOut,
  publicationLimits,
  publicationOf,
  rowsLeftOut,
  wholeTableSql,
} from "../../sources/postgres/wal/publication.ts";
import { SLOT_PREFIX, type SlotHealth, slotHealth, slotName } from "../../sources/postgres/wal/slot.ts";
import { operationReadSettings } from "../events/event-source.ts";
import { knownPipelines } from "../pipelines/pipelines.ts";
import type { DoctorSubject, Finding } from "./finding.ts";

const GIB = 1024 ** 3;
/** More than a reader that keeps up leaves behind. */
const RETAINED_BYTES_MAX = 2 * GIB;

type RawFinding = Omit<Finding, "check">;

/**
 * Checks the requirements of readers of the write-ahead log, and the size of their slots. Replica identities do not
 * matter to inserts.
 */
export async function checkWal({ database, publication, wal = [] }: DoctorSubject): Promise<readonly Finding[]> {
  const pipelines = (await knownPipelines(database)).filter(({ log }) => log === "wal");
  const slots = new Map<string, string>();
  for (const { pipeline } of pipelines) slots.set(await slotName(database, pipeline), pipeline);
  const facts = await readFacts(database);
  const isUsed = wal.length > 0 || pipelines.length > 0;
  const found: RawFinding[] = [
    ...(isUsed ? settingFindings(facts, database.role) : []),
    ...facts.slots.filter(({ name }) => !slots.has(name)).map(unclaimedSlotFinding),
  ];
  for (const [slot, pipeline] of slots) {
    found.push(...slotFindings(slot, pipeline, await slotHealth(database, slot)));
  }
  for (const table of wal.filter(({ schema }) => schema !== MESSAGE_SCHEMA)) {
    found.push(...(await leftOut(database, publication ?? publicationOf(table), table)));
  }
  // A pipeline that has started to read left them out deliberately.
  const begun = new Set(pipelines.map(({ schema, table }) => displayTable({ schema, table })));
  for (const table of wal) {
    if (table.schema !== MESSAGE_SCHEMA && !begun.has(displayTable(table))) {
      found.push(...(await earlierRows(database, table)));
    }
  }
  return found.map(({ severity, what, fix }) => ({ severity, check: "wal", what, fix }));
}

interface ServerFacts {
  readonly settings: ReadonlyMap<string, string>;
  readonly mayReplicate: boolean;
  readonly slotsUsed: number;
  /** Slots that the relay created in this database. */
  readonly slots: readonly { readonly name: string; readonly retained: string }[];
}

async function readFacts(database: Database): Promise<ServerFacts> {
  const settings = operationReadSettings(database, "reading the replication slots");
  return await transaction(database.pool, settings, async (session) => {
    const values = await session.rows(
      `select name, setting from pg_catalog.pg_settings
       where name in ('wal_level', 'max_replication_slots', 'max_slot_wal_keep_size')`,
    );
    // Some hosted servers grant the right through a role instead.
    const [role] = await session.rows(
      `select rolsuper or rolreplication or exists (select from pg_catalog.pg_roles m
           where m.rolname = 'rds_replication' and pg_catalog.pg_has_role(m.oid, 'member')),
         (select count(*) from pg_catalog.pg_replication_slots)
       from pg_catalog.pg_roles where rolname = current_user`,
    );
    const slots = await session.rows(
      `select slot_name, pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint)
       from pg_catalog.pg_replication_slots
       where database = current_database() and starts_with(slot_name, '${SLOT_PREFIX}') order by slot_name`,
    );
    return {
      settings: new Map(values.map((row: Row) => [row[0] ?? "", row[1] ?? ""])),
      mayReplicate: role?.[0] === "t",
      slotsUsed: Number(role?.[1]),
      slots: slots.map((row) => ({ name: row[0] ?? "", retained: row[1] ?? "nothing" })),
    };
  });
}

function settingFindings({ mayReplicate, settings, slots, slotsUsed }: ServerFacts, role: string): RawFinding[] {
  const found: RawFinding[] = [];
  const level = settings.get("wal_level");
  if (level !== "logical") {
    const what = `wal_level is ${level}: the write-ahead log does not contain the rows`;
    found.push({ severity: "error", what, fix: "alter system set wal_level = 'logical'; -- and restart the server" });
  }
  if (!mayReplicate) {
    const what = `The role ${role} lacks the right to read the write-ahead log`;
    found.push({ severity: "error", what, fix: `alter role ${quoteIdentifier(role)} replication;` });
  }
  const slotsMax = Number(settings.get("max_replication_slots"));
  if (slots.length === 0 && slotsUsed >= slotsMax) {
    const what = `All ${slotsMax} replication slots are in use`;
    const fix = `alter system set max_replication_slots = ${slotsMax + 10}; -- and restart the server`;
    found.push({ severity: "error", what, fix });
  }
  if (settings.get("max_slot_wal_keep_size") === "-1") {
    const what =
      "max_slot_wal_keep_size is not set: a stopped relay retains the write-ahead log until the server's disk is full";
    const fix = "alter system set max_slot_wal_keep_size = '50GB'; select pg_reload_conf();";
    found.push({ severity: "warning", what, fix });
  }
  return found;
}

function unclaimedSlotFinding({ name, retained }: { readonly name: string; readonly retained: string }): RawFinding {
  const what = `The replication slot ${name} belongs to no pipeline and retains ${retained} of the write-ahead log`;
  return { severity: "warning", what, fix: `select pg_drop_replication_slot(${quoteLiteral(name)});` };
}

function slotFindings(slot: string, pipeline: string, health: SlotHealth | null): RawFinding[] {
  const reset = `outbox-relay log reset ${pipeline}`;
  if (health === null || health.walStatus === "lost") {
    const why = health === null ? "is gone" : "is lost: it was behind by more than max_slot_wal_keep_size";
    return [{ severity: "error", what: `The replication slot ${slot} of ${pipeline} ${why}`, fix: reset }];
  }
  const found: RawFinding[] = [];
  const retained = health.retainedBytes ?? 0;
  if (health.walStatus === "unreserved" || retained > RETAINED_BYTES_MAX) {
    const left = health.safeBytes === null ? "" : `, and is lost after ${inGib(Math.max(0, health.safeBytes))} more`;
    const state = health.active ? "is being read" : "is not being read";
    const what = `The replication slot of ${pipeline} ${state} and retains ${inGib(retained)} of the write-ahead log${left}`;
    found.push({
      severity: "warning",
      what,
      fix: `outbox-relay status shows why it does not progress. If it is no longer needed: ${reset}`,
    });
  }
  if (health.isFailover === false) {
    const what = `The replication slot of ${pipeline} is not synchronized to standbys: a failover loses it`;
    const fix = `psql "dbname=${health.database} replication=database" -c 'ALTER_REPLICATION_SLOT ${slot} (FAILOVER true)'`;
    found.push({ severity: "warning", what, fix });
  }
  return found;
}

function inGib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`;
}

/** Rows and columns that the publication leaves out. */
async function leftOut(database: Database, publication: string, table: TableName): Promise<RawFinding[]> {
  const settings = operationReadSettings(database, `reading the publication ${publication}`);
  const limits = await transaction(database.pool, settings, (session) =>
    publicationLimits(session, publication, table),
  );
  const fix = wholeTableSql(publication, table);
  return limits.flatMap((limit): RawFinding[] => [
    ...(limit.rowFilter === null ? [] : [{ severity: "error" as const, what: rowsLeftOut(limit, table), fix }]),
    ...(limit.lacking.length === 0 ? [] : [{ severity: "warning" as const, what: columnsLeftOut(limit, table), fix }]),
  ]);
}

/** Uses an estimate of the server: counting would be slow. */
async function earlierRows(database: Database, table: TableName): Promise<RawFinding[]> {
  const settings = operationReadSettings(database, "reading the table", displayTable(table));
  const [row] = await transaction(database.pool, settings, (session) =>
    session.rows("select reltuples::bigint from pg_catalog.pg_class where oid = to_regclass($1)", [quoteTable(table)]),
  );
  const rows = Number(row?.[0] ?? 0);
  if (!(rows > 0)) return [];
  const what = `${displayTable(table)} has about ${rows} rows from before its slot: the write-ahead log does not contain them`;
  return [{ severity: "warning", what, fix: "LOG_START=now" }];
}
