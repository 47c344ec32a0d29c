import pg from "pg";
import { grantsFor } from "../postgres/grants.ts";
import { managedTableSql } from "../postgres/managed/managed-table.sql.ts";

/** Outbox tables in which the relay marks rows. The shop has four services, each with a different kind of outbox. */
const QUEUES = [
  { schema: "orders", table: "outbox" },
  { schema: "billing", table: "outbox_events" },
  { schema: "payments", table: "openoutbox_events" },
] as const;

/** A log that the relay creates and reads by position, without marking rows. */
const SHIPPING = { schema: "shipping", table: "outbox" } as const;

/** Subscribers of the shipping log, each with its own checkpoint and a destination of the same name. */
export const SHOP_SUBSCRIBERS = ["search", "warehouse"] as const;

export const DEMO_ROLE = "outbox_relay_demo";

const CREATE = `
create schema orders; create schema billing; create schema payments;
create table orders.outbox (
  id uuid primary key default gen_random_uuid(), aggregate_id text not null, event_type text not null,
  payload jsonb not null, headers jsonb, correlation_id uuid, created_at timestamptz not null default clock_timestamp(),
  published boolean not null default false, published_at timestamptz);
create index on orders.outbox (created_at) where published = false;
create index on orders.outbox (aggregate_id, created_at);
create index on orders.outbox (correlation_id);
create table billing.outbox_events (
  id bigint generated always as identity primary key, aggregate_id text not null, event_type text not null,
  payload text not null, correlation_id uuid, created_at timestamptz not null default clock_timestamp(),
  processed_at timestamptz);
create index on billing.outbox_events (id) where processed_at is null;
create table payments.openoutbox_events (
  event_id uuid primary key default gen_random_uuid(), event_type text not null, partition_key text,
  payload bytea not null, headers jsonb not null default '{}', status text not null default 'PENDING',
  attempts int not null default 0, last_error text, available_at timestamptz not null default clock_timestamp(),
  locked_by text, locked_at timestamptz, delivered_at timestamptz,
  created_at timestamptz not null default clock_timestamp(), updated_at timestamptz not null default clock_timestamp(),
  constraint check_valid_status check (status in ('PENDING', 'DELIVERING', 'DELIVERED', 'DEAD')));
create index on payments.openoutbox_events (available_at, created_at) where status = 'PENDING';
create index on payments.openoutbox_events (locked_at) where status = 'DELIVERING';
create schema shipping authorization ${DEMO_ROLE};`;

/** Creates the shop's tables and a role for the relay, which logs in with this password. */
export async function buildShop(url: string, rolePassword: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`create role ${DEMO_ROLE} login password ${pg.escapeLiteral(rolePassword)}`);
    await client.query(CREATE);
    await client.query(grantsFor({ role: DEMO_ROLE, tables: QUEUES, retention: true }));
    // The relay creates and drops its partitions, so the relay's role must own it.
    await client.query(`set role ${DEMO_ROLE}`);
    await client.query(managedTableSql({ table: SHIPPING, payload: "text", partition: "1 day", wakeUp: true }));
  } finally {
    await client.end();
  }
}

/** The lines of a table's events: one for a table, one per subscriber for a log. */
export function linesOf(source: string): readonly string[] {
  const isLog = source === `${SHIPPING.schema}.${SHIPPING.table}`;
  return isLog ? SHOP_SUBSCRIBERS.map((subscriber) => `${source}@${subscriber}`) : [source];
}
