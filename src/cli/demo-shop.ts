import pg from "pg";
import { grantsFor } from "../postgres/grants.ts";

/** Three services of one shop, each with an outbox of its own make. */
const TABLES = [
  { schema: "orders", table: "outbox" },
  { schema: "billing", table: "outbox_events" },
  { schema: "shipping", table: "outbox" },
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

/** The order whose event no destination takes. */
export const POISON_ORDER = "order-13";

export async function buildShop(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(CREATE);
  await client.query(grantsFor({ role: DEMO_ROLE, tables: TABLES }));
  await client.end();
}

/** Places orders, one transaction each, until stopped. */
export class Shoppers {
  readonly #client: pg.Client;
  #order = 0;
  #stopped = false;
  #running: Promise<void> | null = null;

  constructor(url: string) {
    this.#client = new pg.Client({ connectionString: url });
  }

  async start(everyMs: number): Promise<void> {
    await this.#client.connect();
    this.#running = this.#shop(everyMs);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
    await this.#client.end();
  }

  async #shop(everyMs: number): Promise<void> {
    while (!this.#stopped) {
      this.#order += 1;
      const key = `order-${this.#order % 40}`;
      await this.#client.query("begin");
      await this.#write("orders.outbox", key, "order.placed", { order: key, total: 10 + (this.#order % 90) });
      await this.#write("billing.outbox_events", key, "invoice.issued", { order: key });
      if (this.#order % 3 === 0) await this.#write("shipping.outbox", key, "parcel.sent", { order: key });
      await this.#client.query("commit");
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  }

  async #write(table: string, key: string, type: string, payload: unknown): Promise<void> {
    const value = table === "shipping.outbox" ? Buffer.from(JSON.stringify(payload)) : JSON.stringify(payload);
    await this.#client.query(`insert into ${table} (aggregate_id, event_type, payload) values ($1, $2, $3)`, [
      key,
      type,
      value,
    ]);
  }
}
