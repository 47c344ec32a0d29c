import pg from "pg";
import type { PostgresServer } from "./postgres.ts";

/** Defaults that change how values are printed, how literals are read, and what a name means. */
const DEFAULTS: Readonly<Record<string, string>> = {
  timezone: "'Asia/Kolkata'",
  datestyle: "'SQL, DMY'",
  intervalstyle: "'iso_8601'",
  bytea_output: "'escape'",
  extra_float_digits: "-15",
  quote_all_identifiers: "on",
  standard_conforming_strings: "off",
  backslash_quote: "on",
  escape_string_warning: "off",
  array_nulls: "off",
  lc_numeric: "'C'",
  lc_monetary: "'C'",
  lc_time: "'C'",
  default_transaction_isolation: "'serializable'",
  default_transaction_read_only: "on",
  search_path: "shadow, public, pg_catalog",
};

/**
 * A schema that has a function, an operator or a table of the same name for nearly everything in the catalogue. Whoever
 * gets there by the search path gets an error, or an empty table.
 */
const SHADOW = `
create schema shadow;
grant usage on schema shadow to public;
do $$
declare it record;
begin
  for it in
    select p.proname as name, pg_get_function_identity_arguments(p.oid) as args, pg_get_function_result(p.oid) as result
    from pg_proc p
    where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f' and not p.proretset and p.provariadic = 0
      and p.proargmodes is null
      and not exists (select from unnest(p.proargtypes::oid[] || p.prorettype) a join pg_type t on t.oid = a where t.typtype = 'p')
  loop
    execute format('create function shadow.%I(%s) returns %s language plpgsql as %L', it.name, it.args, it.result,
      'begin raise exception ''shadow.% was called'', ' || quote_literal(it.name) || '; end');
  end loop;
  for it in
    select o.oprname as name, o.oprleft::regtype as l, o.oprright::regtype as r, o.oprcode::oid as code, p.proname
    from pg_operator o join pg_proc p on p.oid = o.oprcode
    where o.oprname in ('=', '<>', '<', '>', '<=', '>=', '||', '~', '+', '-', '*', '/', '&') and o.oprleft <> 0
  loop
    continue when to_regprocedure(format('shadow.%I(%s,%s)', it.proname, it.l, it.r)) is null;
    execute format('create operator shadow.%s (function = shadow.%I, leftarg = %s, rightarg = %s)',
      it.name, it.proname, it.l, it.r);
  end loop;
  for it in select c.relname as name from pg_class c
    where c.relnamespace = 'pg_catalog'::regnamespace and c.relkind in ('r', 'v') and c.relname ~ '^pg_'
  loop
    execute format('create table shadow.%I ()', it.name);
    execute format('grant select on shadow.%I to public', it.name);
  end loop;
end $$;
`;

/** Gives the role every default that a database of other people might have. Once per role; connections begin anew. */
export async function makeHostile(server: PostgresServer, role: string): Promise<void> {
  const { rows } = await server.query("select from pg_namespace where nspname = 'shadow'");
  if (rows.length === 0) await server.query(SHADOW);
  const name = pg.escapeIdentifier(role);
  const sets = Object.entries(DEFAULTS).map(([setting, value]) => `alter role ${name} set ${setting} = ${value}`);
  await server.query(sets.join("; "));
}
