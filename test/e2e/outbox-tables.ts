import type pg from "pg";
import { quoteTable, type TableName } from "../../src/postgres/identifiers.ts";

/** An outbox as some service might have it. */
export interface OutboxTable extends TableName {
  /** What tells the order of a key's events: the time of the insert, or a sequence. */
  readonly order: "time" | "sequence";
  readonly payload: "json" | "bytea";
  readonly flags: readonly string[];
}

export const ORDERS: OutboxTable = {
  schema: "orders",
  table: "outbox",
  order: "time",
  payload: "json",
  flags: ["published", "published_at"],
};

export const BILLING: OutboxTable = {
  schema: "billing",
  table: "outbox_events",
  order: "sequence",
  payload: "bytea",
  flags: ["processed_at"],
};

/** The time is that of the insert, not the start of the transaction, which can contradict the order of the locks. */
export function outboxTableSql(table: OutboxTable): string {
  const name = quoteTable(table);
  const columns = [
    "id uuid primary key default gen_random_uuid()",
    ...(table.order === "sequence" ? ["position bigint generated always as identity"] : []),
    "aggregate_id text",
    "aggregate_type text not null default 'order'",
    "event_type text not null",
    `payload ${table.payload}`,
    "correlation_id uuid default gen_random_uuid()",
    "headers jsonb",
    "created_at timestamptz default clock_timestamp()",
    ...table.flags.map((flag) =>
      flag.endsWith("_at") ? `${flag} timestamptz` : `${flag} boolean not null default false`,
    ),
  ];
  const orderColumn = table.order === "sequence" ? "position" : "created_at";
  return `
create schema if not exists ${quoteTable(table).split(".")[0]};
create table ${name} (${columns.join(", ")});
create index on ${name} (${orderColumn}) where ${pendingSql(table)};`;
}

export function pendingSql({ flags }: OutboxTable): string {
  return flags.map((flag) => (flag.endsWith("_at") ? `${flag} is null` : `not ${flag}`)).join(" or ");
}

/** Where writers keep the lock of each key and note what they write. */
export const LEDGER_SQL = `
create schema e2e;
create table e2e.aggregates (key text primary key, last_sequence bigint not null default 0);
create table e2e.ledger (
  source text not null,
  id uuid primary key,
  key text,
  sequence bigint not null,
  crc bigint not null
);`;

export async function createTables(client: pg.Client | pg.Pool, tables: readonly OutboxTable[]): Promise<void> {
  await client.query([LEDGER_SQL, ...tables.map(outboxTableSql)].join("\n"));
}
