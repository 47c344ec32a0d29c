import { RelayError } from "../../core/errors.ts";
import { displayTable, quoteTable, type TableName } from "../identifiers.ts";
import type { Database } from "../pool.ts";
import type { Session } from "../session.ts";
import { transaction } from "../transaction.ts";
import { isManagedSql, managedNames, type PartitionStep, stepOfComment } from "./managed-names.ts";

/** A partition of a managed outbox. */
export interface Partition {
  readonly name: TableName;
  /** Its time range; open ends are infinite. Null for DEFAULT. */
  readonly range: PartitionRange | null;
}

/** From inclusive to exclusive. */
export interface PartitionRange {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What the catalog says about a managed outbox. */
export interface ManagedFacts {
  readonly table: TableName;
  readonly payload: "text" | "bytea";
  /** A day where the comment was lost. */
  readonly step: PartitionStep;
  readonly hasWakeUp: boolean;
  /** The wake-up's function exists; without its trigger, somebody has dropped the trigger by hand. */
  readonly hasWakeUpFunction: boolean;
  /** The server's clock. */
  readonly nowMs: number;
  /** By time; DEFAULT is the last. */
  readonly partitions: readonly Partition[];
}

/** Returns null where there is no such table, or it is not a managed outbox. */
export async function readManaged(database: Database, table: TableName): Promise<ManagedFacts | null> {
  const settings = {
    context: database.errorContext("reading the managed outbox", displayTable(table)),
    statementTimeoutMs: database.timeouts.readMs,
    lockTimeoutMs: database.timeouts.lockMs,
    readOnly: true,
  };
  return await transaction(database.pool, settings, (session) => managedFacts(session, table));
}

/** Like `readManaged`, but throws TABLE_MISSING. */
export async function requireManaged(database: Database, table: TableName): Promise<ManagedFacts> {
  const facts = await readManaged(database, table);
  if (facts !== null) return facts;
  throw new RelayError("TABLE_MISSING", `There is no managed outbox ${displayTable(table)}`);
}

async function managedFacts(session: Session, table: TableName): Promise<ManagedFacts | null> {
  const [row] = await session.rows(
    `select format_type(p.atttypid, -1), obj_description(c.oid, 'pg_class'),
       exists (select from pg_catalog.pg_trigger t where t.tgrelid = c.oid and t.tgname = $3 and t.tgenabled <> 'D'),
       extract(epoch from clock_timestamp()) * 1000,
       exists (select from pg_catalog.pg_proc f where f.pronamespace = n.oid and f.proname = $3)
     from pg_catalog.pg_class c
     join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     join pg_catalog.pg_attribute p on p.attrelid = c.oid and p.attname = 'payload'
     where n.nspname = $1 and c.relname = $2 and c.relkind = 'p' and ${isManagedSql("c.oid")}`,
    [table.schema, table.table, managedNames(table).ring],
  );
  if (row === undefined) return null;
  return {
    table,
    payload: row[0] === "bytea" ? "bytea" : "text",
    step: stepOfComment(row[1] ?? null) ?? "1 day",
    hasWakeUp: row[2] === "t",
    hasWakeUpFunction: row[4] === "t",
    nowMs: Number(row[3]),
    partitions: await partitionsOf(session, table),
  };
}

/** Reads the bounds as the catalog prints them: `FOR VALUES FROM ('..') TO ('..')`. An open end is an infinity. */
async function partitionsOf(session: Session, table: TableName): Promise<readonly Partition[]> {
  const rows = await session.rows(
    `with bounds as (
       select n.nspname, c.relname,
         regexp_match(pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM \\((.+)\\) TO \\((.+)\\)$') as range
       from pg_catalog.pg_inherits i
       join pg_catalog.pg_class c on c.oid = i.inhrelid
       join pg_catalog.pg_namespace n on n.oid = c.relnamespace
       where i.inhparent = $1::regclass and c.relispartition
     ), times as (
       select nspname, relname,
         (case range[1] when 'MINVALUE' then '-infinity' else trim('''' from range[1]) end)::timestamptz as starts,
         (case range[2] when 'MAXVALUE' then 'infinity' else trim('''' from range[2]) end)::timestamptz as ends
       from bounds
     )
     select nspname, relname, extract(epoch from starts) * 1000, extract(epoch from ends) * 1000
     from times order by starts nulls last`,
    [quoteTable(table)],
  );
  return rows.map(([schema, name, from, to]) => ({
    name: { schema: schema ?? "", table: name ?? "" },
    range: from == null || to == null ? null : { fromMs: Number(from), toMs: Number(to) },
  }));
}
