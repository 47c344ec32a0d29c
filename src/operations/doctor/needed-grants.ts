import { grantsFor, type OwnedTable } from "../../postgres/grants.ts";
import { quoteTable, type TableName } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { MESSAGE_SCHEMA } from "../../sources/postgres/log/log-preset.ts";
import { missingPublicationSql } from "../../sources/postgres/wal/publication.ts";
import { operationReadSettings } from "../events/event-source.ts";

/** The existing sources of a relay, by how it reads them. */
interface Needs {
  readonly role: string;
  /** Tables whose rows the relay marks. */
  readonly queues: readonly TableName[];
  readonly managed: readonly TableName[];
  readonly eventTables: readonly TableName[];
  /** Tables, or `message` and a prefix, that are read from the write-ahead log. */
  readonly wal: readonly TableName[];
  /** The publication that someone else manages. */
  readonly publication?: string | undefined;
  readonly retention: boolean;
  /** Whether the role also writes test events. */
  readonly withSmoke: boolean;
}

/** The statements that grant a role everything that these sources need. Reads the catalogue and changes nothing. */
export async function neededGrants(database: Database, needs: Needs): Promise<string> {
  const { eventTables, managed, publication, queues, retention, role, wal, withSmoke } = needs;
  const read = [...eventTables, ...wal.filter(({ schema }) => schema !== MESSAGE_SCHEMA)];
  const written = withSmoke ? [...queues, ...read] : [];
  return await transaction(database.pool, operationReadSettings(database, "reading the tables"), async (session) =>
    grantsFor({
      role,
      relaySchema: database.relaySchema,
      tables: queues,
      logs: read,
      managed: await ownedTables(session, managed),
      hasWal: wal.length > 0 && !(await mayReplicate(session, role)),
      publications: publication === undefined ? await publicationsFor(session, wal) : [],
      retention,
      smoke: { tables: written, sequences: await sequencesOf(session, written) },
    }),
  );
}

/** Directly, or as a member of the role that managed services have for it. */
async function mayReplicate(session: Session, role: string): Promise<boolean> {
  const [row] = await session.rows(
    `select rolreplication or rolsuper or coalesce(pg_has_role(oid, to_regrole('rds_replication'), 'usage'), false)
     from pg_catalog.pg_roles where rolname = $1`,
    [role],
  );
  return row?.[0] === "t";
}

/** The owners of these tables and of each of their partitions. */
export async function ownedTables(session: Session, tables: readonly TableName[]): Promise<readonly OwnedTable[]> {
  const owned: OwnedTable[] = [];
  for (const table of tables) {
    const rows = await session.rows(OWNERS_SQL, [quoteTable(table)]);
    const parts = rows.map(([schema, name, owner, isOwn]) => ({
      ...{ schema: schema ?? "", table: name ?? "", owner: owner ?? "" },
      isOwn: isOwn === "t",
    }));
    owned.push({ schema: table.schema, table: table.table, parts });
  }
  return owned;
}

/** The table first, then its partitions, including DEFAULT. */
const OWNERS_SQL = `
select n.nspname, c.relname, pg_get_userbyid(c.relowner), pg_has_role(c.relowner, 'usage')
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = $1::regclass or c.oid in (select inhrelid from pg_catalog.pg_inherits where inhparent = $1::regclass)
order by c.oid <> $1::regclass, c.relname`;

async function publicationsFor(session: Session, wal: readonly TableName[]): Promise<readonly string[]> {
  const wanted = wal.map((table) => (table.schema === MESSAGE_SCHEMA ? null : table));
  const statements = new Set<string>();
  for (const table of wanted) {
    const sql = await missingPublicationSql(session, table);
    if (sql !== null) statements.add(sql);
  }
  return [...statements];
}

/** Sequences of `serial` columns: identity columns need no right of their own. */
async function sequencesOf(session: Session, tables: readonly TableName[]): Promise<readonly TableName[]> {
  const rows = await session.rows(
    `select n.nspname, c.relname from pg_catalog.pg_depend d
     join pg_catalog.pg_class c on c.oid = d.objid and c.relkind = 'S'
     join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where d.refobjid = any(select t::regclass from unnest($1::text[]) t) and d.deptype = 'a' order by 1, 2`,
    [tables.map(quoteTable)],
  );
  return rows.map(([schema, table]) => ({ schema: schema ?? "", table: table ?? "" }));
}
