import { grantsFor, OWN_RIGHTS } from "../../postgres/grants.ts";
import { displayTable, type TableName } from "../../postgres/identifiers.ts";
import { transaction } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../event-source.ts";
import type { DoctorSubject, Finding } from "./finding.ts";

interface Wanted extends TableName {
  readonly rights: readonly string[];
}

/** What the role that asks may not do, and the statements that mend all of it. */
export async function checkGrants(subject: DoctorSubject): Promise<readonly Finding[]> {
  const { database, retentionMs } = subject;
  const lacking = await lackingRights(subject);
  if (lacking.length === 0) return [];
  const { role } = lacking[0]!;
  const tables = lacking.filter(({ schema }) => schema !== database.relaySchema);
  const list = lacking.map(({ rights, ...table }) => `${rights.join(", ")} on ${displayTable(table)}`).join("; ");
  return [
    {
      severity: "error",
      check: "grants",
      what: `The role ${role} lacks ${list}`,
      fix: grantsFor({ role, relaySchema: database.relaySchema, tables, retention: retentionMs !== null }).trimEnd(),
    },
  ];
}

/** Of tables that are there; a right on some of the columns is enough to read or mark rows. */
async function lackingRights(subject: DoctorSubject): Promise<readonly (Wanted & { readonly role: string })[]> {
  const { database } = subject;
  const wanted = wantedRights(subject).flatMap((table) => table.rights.map((right) => ({ ...table, right })));
  const settings = operationReadSettings(database, "looking at the grants");
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

function wantedRights({ database, retentionMs, tables }: DoctorSubject): readonly Wanted[] {
  const schema = database.relaySchema;
  const ofEvents = ["usage", "select", "update", ...(retentionMs === null ? [] : ["delete"])];
  return [
    ...tables.filter(({ isThere }) => isThere).map(({ schema, table }) => ({ schema, table, rights: ofEvents })),
    ...OWN_RIGHTS.flatMap((own) => own.tables.map((table) => ({ schema, table, rights: ["usage", ...own.rights] }))),
  ];
}
