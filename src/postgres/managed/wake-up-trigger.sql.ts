import { quoteIdentifier, quoteLiteral, quoteTable, type TableName } from "../identifiers.ts";
import { dollarQuoted } from "./dollar-quoted.ts";
import { managedNames, WAKE_UP_LOCK } from "./managed-names.ts";

/**
 * Notifies only while a relay is idle, because NOTIFY takes a server-wide lock at the commit. While the relay is awake,
 * the wake-up's lock is free and a writer pays only for the condition. For use in a plpgsql block.
 */
export function wakeUpTriggerSql(table: TableName, wakeUp: boolean): string {
  const parent = quoteTable(table);
  const ring = managedNames(table).ring;
  const fn = `${quoteIdentifier(table.schema)}.${quoteIdentifier(ring)}`;
  const oid = `${quoteLiteral(parent)}::regclass`;
  const there = `exists (select from pg_catalog.pg_trigger t where t.tgrelid = ${oid} and t.tgname = ${quoteLiteral(ring)})`;
  if (!wakeUp) {
    return `
  if ${there} then
    drop trigger ${quoteIdentifier(ring)} on ${parent};
  end if;
  drop function if exists ${fn}();`;
  }
  const body = `begin
  perform pg_catalog.pg_notify(pg_catalog.concat('outbox_relay_', tg_relid), '');
  return null;
end`;
  return `
  create or replace function ${fn}() returns trigger language plpgsql as ${dollarQuoted(body)};
  if not ${there} then
    create trigger ${quoteIdentifier(ring)} after insert on ${parent} for each statement
      when (not pg_try_advisory_xact_lock_shared(${WAKE_UP_LOCK}, ${oid}::oid::int))
      execute function ${fn}();
  end if;
  if exists (select from pg_catalog.pg_trigger t
    where t.tgrelid = ${oid} and t.tgname = ${quoteLiteral(ring)} and t.tgenabled = 'D') then
    alter table ${parent} enable trigger ${quoteIdentifier(ring)};
  end if;`;
}
