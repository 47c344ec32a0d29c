import { RelayError } from "../core/errors.ts";
import type { SourceWarning } from "../ports/queue-store.ts";
import { displayTable, quoteIdentifier, quoteLiteral, quoteTable, type TableName } from "./identifiers.ts";
import type { Database } from "./pool.ts";
import { glance } from "./transaction.ts";

/** What row-level security may hide from the current role. */
interface RowSecurity {
  readonly role: string;
  readonly mayHide: boolean;
  readonly mayKeepUnmarked: boolean;
  /** The names of all policies that apply to the role. */
  readonly policies: readonly string[];
  /** Those that no other policy can override. */
  readonly restrictive: readonly string[];
}

/** A queue's rows are read and marked, a log's rows are only read. */
type Use = "queue" | "log";

/** Null where row-level security does not apply to the role or restricts nothing. */
export async function readRowSecurity(database: Database, table: TableName, use: Use): Promise<RowSecurity | null> {
  const context = database.errorContext("reading row-level security", displayTable(table));
  const [row] = await glance(database.pool, context, database.timeouts.statementMs, rowSecuritySql(table));
  if (row?.[0] !== "t") return null;
  const names = (text: string | null | undefined) => JSON.parse(text ?? "[]") as readonly string[];
  const [mayHide, mayKeepUnmarked] = [row[2] !== "t", use === "queue" && row[3] !== "t"];
  if (!mayHide && !mayKeepUnmarked) return null;
  return {
    role: row[1] ?? database.role,
    mayHide,
    mayKeepUnmarked,
    policies: names(row[4]),
    restrictive: names(row[5]),
  };
}

/**
 * Whether row security is active for the role (not the owner without FORCE, a superuser, or BYPASSRLS), and whether an
 * unconditional policy shows it all rows and lets it update all of them, with no restrictive policy that could prevent
 * it.
 */
function rowSecuritySql(table: TableName): string {
  const all = (commands: string) => `coalesce(bool_or(permissive and cmd in (${commands}) and is_open), false)
    and not coalesce(bool_or(not permissive and cmd in (${commands}) and not is_open), false)`;
  return `
with target as (
  select c.oid from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = ${quoteLiteral(table.schema)} and c.relname = ${quoteLiteral(table.table)}),
policies as (
  select p.polname as name, p.polpermissive as permissive, p.polcmd::text as cmd,
    coalesce(pg_catalog.pg_get_expr(p.polqual, p.polrelid), 'true') = 'true'
      and coalesce(pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid), 'true') = 'true' as is_open
  from pg_catalog.pg_policy p join target on target.oid = p.polrelid
  where p.polcmd in ('r', 'w', '*') and exists (
    select from pg_catalog.unnest(p.polroles) r where r = 0 or pg_catalog.pg_has_role(r, 'member')))
select coalesce(pg_catalog.row_security_active((select oid from target)), false), current_user,
  ${all("'r', '*'")}, ${all("'w', '*'")}, coalesce(pg_catalog.json_agg(name order by name), '[]'),
  coalesce(pg_catalog.json_agg(name order by name) filter (where not permissive), '[]')
from policies`;
}

/** The fault in words, for health and doctor. */
export function rowSecurityText(table: TableName, { role, mayHide, mayKeepUnmarked, policies }: RowSecurity): string {
  const effects = [
    mayHide ? "hidden rows are neither delivered nor counted" : null,
    mayKeepUnmarked ? "rows that the role cannot update are delivered but stay unmarked" : null,
  ].filter((effect) => effect !== null);
  const named = policies.length === 0 ? "no policy shows it any row" : `policies: ${policies.join(", ")}`;
  return `Row-level security of ${displayTable(table)} is active for the role ${role} (${named}): ${effects.join("; ")}`;
}

/** The statement that shows the role all rows. */
export function rowSecurityFix(table: TableName, { role, restrictive }: RowSecurity): string {
  const name = quoteIdentifier(role);
  if (restrictive.length > 0) {
    return `alter role ${name} bypassrls; -- the restrictive ${restrictive.join(", ")} cannot be overridden by a policy`;
  }
  return `create policy outbox_relay on ${quoteTable(table)} to ${name} using (true) with check (true);`;
}

/** The same as warnings of a source. */
export async function rowSecurityWarnings(
  database: Database,
  table: TableName,
  use: Use,
): Promise<readonly SourceWarning[]> {
  const found = await readRowSecurity(database, table, use);
  if (found === null) return [];
  const { code, message } = new RelayError("ROWS_HIDDEN", rowSecurityText(table, found));
  return [{ code, reason: message }];
}
