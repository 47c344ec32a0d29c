import { RelayError } from "../../core/errors.ts";
import {
  displayTable,
  dollarQuoted,
  quoteIdentifier,
  quoteLiteral,
  quoteTable,
  type TableName,
} from "../identifiers.ts";
import { doSql } from "../session-settings.ts";
import { BLOCK_FILTER_STORAGE, createBlockFilterSql, prepareBlockFilterSql } from "./block-filter.ts";
import {
  AHEAD_MS,
  isManagedSql,
  type ManagedTable,
  managedComment,
  managedNames,
  PARTITION_STEPS,
  upkeepLock,
  WAKE_UP_LOCK,
} from "./managed-names.ts";
import { createPartitionsSql } from "./managed-partitions.sql.ts";

/**
 * Creates a managed outbox, or its missing parts. Running it twice changes nothing, and several processes can run it at
 * once. Each statement is complete in itself, so it works with or without a transaction around it. It grants nothing.
 */
export function managedTableSql(options: ManagedTable): string {
  const { table, partition } = options;
  if (!PARTITION_STEPS.includes(partition)) {
    const what = `Unknown partition step for ${displayTable(table)}: ${JSON.stringify(partition)}`;
    throw new RelayError("CONFIG_INVALID", `${what}. Choose one of: ${PARTITION_STEPS.join(", ")}`);
  }
  return `${createTableSql(options)}\n${createPartitionsSql(table, partition, AHEAD_MS[partition])}\n`;
}

function createTableSql({ table, payload, partition, wakeUp }: ManagedTable): string {
  const name = quoteTable(table);
  return doSql(
    "  there oid;",
    `  perform pg_advisory_xact_lock(hashtextextended(${quoteLiteral(upkeepLock(table))}, 0));
  if not exists (select from pg_catalog.pg_namespace where nspname = ${quoteLiteral(table.schema)}) then
    create schema ${quoteIdentifier(table.schema)};
  end if;
  select c.oid into there from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = ${quoteLiteral(table.schema)} and c.relname = ${quoteLiteral(table.table)};
  if there is null then
    ${columnsSql(table, payload)}
    create index on ${name} (xid, id);
    create index on ${name} (id);
    ${createBlockFilterSql(table)}
  else
    ${requireOursSql(table, payload)}
    ${prepareBlockFilterSql(table)}
  end if;
  ${defaultPartitionSql(table)}
  ${publishFunctionSql({ table, payload })}
  ${wakeUpTriggerSql(table, wakeUp)}
  comment on table ${name} is ${quoteLiteral(managedComment(partition))};`,
  );
}

/** The time of the insert, not of the transaction: a row never belongs to a partition of the past. */
function columnsSql(table: TableName, payload: string): string {
  return `create table ${quoteTable(table)} (
      id bigint generated always as identity (cache 1),
      xid xid8 not null default pg_current_xact_id(),
      event_id uuid not null default gen_random_uuid(),
      event_type text not null,
      event_key text,
      payload ${payload} not null,
      headers jsonb,
      correlation_id text,
      traceparent text,
      tracestate text,
      created_at timestamptz not null default clock_timestamp()
    ) partition by range (created_at);`;
}

function requireOursSql(table: TableName, payload: string): string {
  const name = displayTable(table);
  const refuse = (why: string) =>
    `raise exception using errcode = 'duplicate_table', message = ${quoteLiteral(`${name} already exists and ${why}`)};`;
  return `if not (${isManagedSql("there")} and coalesce(replace(pg_get_partkeydef(there), '"', '') = 'RANGE (created_at)', false)) then
      ${refuse("is not a managed outbox: choose another name, or rename that table")}
    end if;
    if not exists (select from pg_catalog.pg_attribute a where a.attrelid = there and a.attname = 'payload'
      and a.atttypid = '${payload}'::regtype) then
      ${refuse(`its payload is not ${payload}: use its present type`)}
    end if;`;
}

function defaultPartitionSql(table: TableName): string {
  const { defaultPartition } = managedNames(table);
  const quoted = quoteTable({ schema: table.schema, table: defaultPartition });
  return `if not exists (select from pg_catalog.pg_partitioned_table p
    where p.partrelid = ${quoteLiteral(quoteTable(table))}::regclass and p.partdefid <> 0) then
    create table ${quoted} partition of ${quoteTable(table)} default with (${BLOCK_FILTER_STORAGE});
    create unique index on ${quoted} (event_id);
  end if;`;
}

/**
 * The SQL function that writes one event in the caller's transaction, from any language. It returns the event's id, or
 * null when the id already exists.
 */
function publishFunctionSql({ table, payload }: Pick<ManagedTable, "table" | "payload">): string {
  const name = `${quoteIdentifier(table.schema)}.${quoteIdentifier(managedNames(table).publish)}`;
  const body = `
  insert into ${quoteTable(table)} as o (event_id, event_type, event_key, payload, headers, correlation_id)
  values ($6, $1, $2, $3, $4, $5)
  on conflict do nothing
  returning o.event_id
`;
  return `create or replace function ${name}(
  event_type text,
  event_key text,
  payload ${payload},
  headers jsonb default null,
  correlation_id text default null,
  event_id uuid default gen_random_uuid()
) returns uuid language sql volatile security invoker as ${dollarQuoted(body)};`;
}

/**
 * Notifies only while a relay is idle, because NOTIFY takes a server-wide lock at the commit. While the relay is awake,
 * the wake-up's lock is free and a writer pays only for the condition. For use in a plpgsql block.
 */
function wakeUpTriggerSql(table: TableName, wakeUp: boolean): string {
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
