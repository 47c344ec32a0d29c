import pg from "pg";
import { grantsFor } from "../postgres/grants.ts";

/** Three services of one shop, each with an outbox of its own make: other ids, other payloads, other marks. */
export const SHOP_TABLES = [
  { schema: "orders", table: "outbox", unpublished: "published = false" },
  { schema: "billing", table: "outbox_events", unpublished: "processed_at is null" },
  { schema: "shipping", table: "outbox", unpublished: "published_at is null" },
] as const;

const CREATE = `
create schema orders; create schema billing; create schema shipping;
create table orders.outbox (
  id uuid primary key default gen_random_uuid(), aggregate_id text not null, event_type text not null,
  payload jsonb not null, correlation_id uuid default gen_random_uuid(), created_at timestamptz not null default clock_timestamp(),
  published boolean not null default false, published_at timestamptz);
create index on orders.outbox (created_at) where published = false;
create table billing.outbox_events (
  id bigint generated always as identity primary key, aggregate_id text not null, event_type text not null,
  payload text not null, created_at timestamptz not null default clock_timestamp(), processed_at timestamptz);
create index on billing.outbox_events (id) where processed_at is null;
create table shipping.outbox (
  id uuid primary key default gen_random_uuid(), aggregate_id text, event_type text not null,
  payload bytea not null, created_at timestamptz not null default clock_timestamp(), published_at timestamptz);
create index on shipping.outbox (created_at) where published_at is null;
create role outbox_relay_demo login;`;

export const DEMO_ROLE = "outbox_relay_demo";

export async function buildShop(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(CREATE);
    await client.query(grantsFor({ role: DEMO_ROLE, tables: SHOP_TABLES, retention: true }));
  } finally {
    await client.end();
  }
}
