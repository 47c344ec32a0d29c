import pg from "pg";
import type { ArrivalBook } from "./arrival-book.ts";

const KEYS = 40;
const TICK_MS_MIN = 20;
const RECONNECT_MS = 500;
const BURST = { statements: 20, keys: 250 };
export const BURST_EVENTS = 2 * BURST.statements * BURST.keys;

// Each statement is a transaction of its own that writes into the outboxes of all services. No key is twice in one:
// rows of one statement have no order that a column shows.
const PLACE = `
with placed as (select * from unnest($1::text[], $2::int[]) as placed (key, number)),
o as (
  insert into orders.outbox (aggregate_id, event_type, payload)
  select key, 'order.placed', jsonb_build_object('order', key, 'number', number, 'total', 10 + number % 90) from placed
  returning id::text),
b as (
  insert into billing.outbox_events (aggregate_id, event_type, payload)
  select key, 'invoice.issued', jsonb_build_object('order', key, 'number', number)::text from placed
  returning id::text),
s as (
  insert into shipping.outbox (aggregate_id, event_type, payload)
  select key, 'parcel.sent', convert_to(jsonb_build_object('order', key, 'number', number)::text, 'UTF8')
  from placed where $3 and number % 3 = 0
  returning id::text)
select 'orders.outbox', id from o union all
select 'billing.outbox_events', id from b union all
select 'shipping.outbox', id from s`;

const POISON = `
insert into billing.outbox_events (aggregate_id, event_type, payload) values ($1, 'invoice.issued', $2)
returning 'billing.outbox_events', id::text`;

interface ShoppersOptions {
  readonly url: string;
  readonly rate: number;
  readonly isShopping: boolean;
  /** Null where nobody sees what arrives. */
  readonly book: ArrivalBook | null;
}

/** The traffic of the shop: orders at a steady rate, and what is asked for besides. All on one connection, in order. */
export class Shoppers {
  isShopping: boolean;
  /** Events written by source. */
  readonly written = new Map<string, number>();
  readonly #options: ShoppersOptions;
  #client: pg.Client | null = null;
  #orders = 0;
  #poisons = 0;
  #stopped = false;
  #wake: (() => void) | null = null;
  #running: Promise<void> | null = null;
  #line: Promise<unknown> = Promise.resolve();

  constructor(options: ShoppersOptions) {
    this.#options = options;
    this.isShopping = options.isShopping;
  }

  start(): void {
    this.#running ??= this.#shop();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wake?.();
    await this.#running;
    await this.#line;
    await this.#client?.end().catch(() => {});
  }

  /** Many orders at once. */
  async burst(): Promise<void> {
    for (let round = 0; round < BURST.statements && !this.#stopped; round += 1) {
      await this.#place(BURST.keys, "burst", false);
    }
  }

  /** One event that the destination refuses, and two of the same key that have to wait behind it. */
  async poison(): Promise<void> {
    this.#poisons += 1;
    const key = `poison-${this.#poisons}`;
    for (const kind of ["poison", "waits", "waits"]) {
      this.#orders += 1;
      await this.#write(POISON, [key, JSON.stringify({ order: key, number: this.#orders, [kind]: true })]);
    }
  }

  async #shop(): Promise<void> {
    const { rate } = this.#options;
    const tickMs = Math.max(TICK_MS_MIN, 1_000 / rate);
    let dueMs = performance.now();
    while (!this.#stopped) {
      const perTick = Math.max(1, Math.round((rate * tickMs) / 1_000));
      const isWritten = !this.isShopping || (await this.#place(perTick, "order", true).then(yes, no));
      dueMs = Math.max(dueMs + tickMs, performance.now());
      await this.#pause(isWritten ? dueMs - performance.now() : RECONNECT_MS);
    }
  }

  async #place(count: number, kind: string, withParcels: boolean): Promise<void> {
    const numbers = Array.from({ length: count }, (_, index) => this.#orders + index + 1);
    this.#orders += count;
    const keys = numbers.map((number) => `${kind}-${number % Math.max(KEYS, count)}`);
    await this.#write(PLACE, [keys, numbers, withParcels]);
  }

  /** One after the other, whoever asks. */
  async #write(sql: string, values: readonly unknown[]): Promise<void> {
    const work = this.#line.then(async () => {
      const client = await this.#connected();
      const { rows } = await client.query<[string, string]>({ text: sql, values: [...values], rowMode: "array" });
      for (const [source, id] of rows) {
        this.#options.book?.written(source, id);
        this.written.set(source, (this.written.get(source) ?? 0) + 1);
      }
    });
    this.#line = work.catch(() => {});
    await work;
  }

  async #connected(): Promise<pg.Client> {
    if (this.#client !== null) return this.#client;
    const client = new pg.Client({ connectionString: this.#options.url });
    const forget = () => {
      if (this.#client === client) this.#client = null;
    };
    client.on("error", forget);
    client.on("end", forget);
    await client.connect();
    this.#client = client;
    return client;
  }

  #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, Math.max(0, ms));
    this.#wake = resolve;
    return promise.finally(() => clearTimeout(timer));
  }
}

const yes = () => true;
const no = () => false;
