import { grantsFor, OWN_RIGHTS } from "../../postgres/grants.ts";
import { displayTable, type TableName } from "../../postgres/identifiers.ts";
import { systemId } from "../../postgres/identity.ts";
import { transaction } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../events/event-source.ts";
import type { DoctorSubject, Finding } from "./finding.ts";

interface Wanted extends TableName {
  readonly rights: readonly string[];
}

/** Which rights the relay's role lacks, and the statements that grant all of them. */
export async function checkGrants(subject: DoctorSubject): Promise<readonly Finding[]> {
  const { database, retentionMs } = subject;
  const lacking = await lackingRights(subject);
  if (lacking.length === 0) return [];
  const { role } = lacking[0]!;
  const ofEvents = lacking.filter(({ schema }) => schema !== database.relaySchema);
  const isRead = (name: TableName) => readTables(subject).some((it) => displayTable(it) === displayTable(name));
  const tables = ofEvents.filter((it) => !isRead(it));
  const logs = ofEvents.filter(isRead);
  const list = lacking.map(({ rights, ...table }) => `${rights.join(", ")} on ${displayTable(table)}`).join("; ");
  return [
    {
      severity: "error",
      check: "grants",
      what: `The role ${role} lacks ${list}`,
      fix: grantsFor({
        ...{ role, relaySchema: database.relaySchema, tables, logs },
        retention: retentionMs !== null,
      }).trimEnd(),
    },
  ];
}

/** Missing rights on existing tables; a right on some columns is enough to read or mark rows. */
async function lackingRights(subject: DoctorSubject): Promise<readonly (Wanted & { readonly role: string })[]> {
  const { database } = subject;
  const wanted = wantedRights(subject).flatMap((table) => table.rights.map((right) => ({ ...table, right })));
  const settings = operationReadSettings(database, "reading the grants");
  const rows = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select n.nspname, c.relname, json_agg(w.privilege), current_user::text
       from unnest($1::text[], $2::text[], $3::text[]) w(schema, name, privilege)
       join pg_catalog.pg_namespace n on n.nspname = w.schema
       join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = w.name
       where case w.privilege when 'usage' then not has_schema_privilege(n.oid, 'usage')
         when 'select' then not has_any_column_privilege(c.oid, 'select')
         when 'update' then not has_any_column_privilege(c.oid, 'update')
         else not has_table_privilege(c.oid, w.privilege) end
       group by 1, 2 order by 1, 2`,
      [wanted.map(({ schema }) => schema), wanted.map(({ table }) => table), wanted.map(({ right }) => right)],
    ),
  );
  return rows.map((row) => ({
    schema: row[0] ?? "",
    table: row[1] ?? "",
    rights: JSON.parse(row[2] ?? "[]") as readonly string[],
    role: row[3] ?? database.role,
  }));
}

/** Logs, whose rows the relay never marks. */
function readTables({ eventTables = [], managed = [] }: DoctorSubject): readonly TableName[] {
  return [...eventTables, ...managed];
}

function wantedRights(subject: DoctorSubject): readonly Wanted[] {
  const { database, retentionMs, tables } = subject;
  const schema = database.relaySchema;
  const ofEvents = ["usage", "select", "update", ...(retentionMs === null ? [] : ["delete"])];
  return [
    ...tables.filter(({ isThere }) => isThere).map(({ schema, table }) => ({ schema, table, rights: ofEvents })),
    ...readTables(subject).map(({ schema, table }) => ({ schema, table, rights: ["usage", "select"] })),
    ...OWN_RIGHTS.flatMap((own) => own.tables.map((table) => ({ schema, table, rights: ["usage", ...own.rights] }))),
  ];
}

/** Whether the database is the original and not a copy, and whether a live instance serves its pipelines. */
export async function checkOwnership({ database }: DoctorSubject): Promise<readonly Finding[]> {
  const { identity, instances, lanes, pipelines } = database.tables;
  return await transaction(database.pool, operationReadSettings(database, "reading the owners"), async (session) => {
    const [own] = await session.rows(`select system_id from ${identity}`);
    const runsOn = await systemId(session);
    const findings: Finding[] = [];
    if (own?.[0] != null && runsOn !== null && own[0] !== runsOn) {
      findings.push({
        severity: "error",
        check: "identity",
        what: "The relay's schema was created on another server: this database is a restored copy",
        fix: "outbox-relay adopt             # replaces the original\noutbox-relay adopt --as-copy   # runs beside the original",
      });
    }
    const rows = await session.rows(
      `select p.name, count(*) from ${pipelines} p join ${lanes} l on l.pipeline = p.name
       left join ${instances} i on i.id = l.owner and i.alive_until > clock_timestamp()
       where i.id is null and p.paused_at is null and not exists (
         select from ${pipelines} o join ${instances} j on o.name = any(j.pipelines) and j.alive_until > clock_timestamp()
         where o.source_schema = p.source_schema and o.source_table = p.source_table and o.name <> p.name)
       group by 1 order by 1`,
    );
    const list = rows.map((row) => `${row[0]} (${row[1]})`).join(", ");
    if (rows.length > 0) {
      const what = `Lanes without a live owner: ${list}`;
      findings.push({
        severity: "warning",
        check: "lanes",
        what,
        fix: "outbox-relay run   # no instance delivers their events",
      });
    }
    return findings;
  });
}
