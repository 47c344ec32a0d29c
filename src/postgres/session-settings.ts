import { dollarQuoted, quoteLiteral } from "./identifiers.ts";

/**
 * The settings that decide how the server prints values and reads names and literals. Databases and roles have their
 * own defaults for all of them, so every statement of the relay runs under these values. `array_nulls` decides whether
 * NULL in a list is a null or the text `NULL`.
 */
const FIXED: Readonly<Record<string, string>> = {
  timezone: "UTC",
  datestyle: "ISO",
  intervalstyle: "postgres",
  bytea_output: "hex",
  extra_float_digits: "1",
  quote_all_identifiers: "off",
  standard_conforming_strings: "on",
  array_nulls: "on",
};

/**
 * The search path stays the database's own, because triggers of its tables run under it. Only the catalog moves to the
 * front again: PostgreSQL searches it before everything listed unless it is listed itself.
 */
const SEARCH_PATH = "pg_catalog.replace(pg_catalog.current_setting('search_path'), 'pg_catalog', 'pg_temp')";

/**
 * One statement that makes the rest of the transaction independent of the session's defaults. It leaves nothing behind,
 * so it works behind a pooler. Names are qualified and literals have no backslashes, because it runs under the defaults
 * itself. `more` wins over the fixed values.
 */
export function fixSettingsSql(more: Readonly<Record<string, string>> = {}): string {
  const settings = Object.entries({ ...FIXED, ...more }).map(([name, value]) => setSql(name, quoteLiteral(value)));
  const path = "search_path" in more ? [] : [setSql("search_path", SEARCH_PATH)];
  return `select ${[...settings, ...path].join(", ")}`;
}

function setSql(name: string, value: string): string {
  return `pg_catalog.set_config('${name}', ${value}, true)`;
}

/** The same for a connection that is never shared, until it ends. */
export function fixSessionSql(more: Readonly<Record<string, string>> = {}): string {
  return fixSettingsSql(more).replaceAll(", true)", ", false)");
}

/**
 * A DO statement that names mean the same for in any session, because other tools run it too. The rest of the caller's
 * transaction keeps its search path.
 */
export function doSql(declarations: string, body: string): string {
  return `do ${dollarQuoted(`
declare
  callers_path text := pg_catalog.current_setting('search_path');
${declarations}
begin
  perform ${setSql("search_path", SEARCH_PATH)};
${body}
  perform ${setSql("search_path", "callers_path")};
end `)};`;
}
