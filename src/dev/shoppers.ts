import pg from "pg";
import type { ArrivalBook } from "./arrival-book.ts";
import { linesOf } from "./demo-shop.ts";

const KEYS = 40;
const TICK_MS_MIN = 20;
const RECONNECT_MS = 500;
const BURST = { statements: 20, keys: 250 };
export const BURST_EVENTS = 2 * BURST.statements * BURST.keys;

// Each statement is one transaction that writes to the outboxes of all services. A statement contains a key only once,
// because no column records the order of rows within a statement. Related events share a correlation id.
const PLACE = `
with placed as materialized (
  select key, number, gen_random_uuid() as correlation, 10 + number % 90 as total
  from unnest($1::text[], $2::int[]) as placed (key, number)),
o as (
  insert into orders.outbox (aggregate_id, event_type, payload, headers, correlation_id)
  select key, case number % 10 when 7 then 'order.changed' else 'order.placed' end,
    jsonb_build_object('order', key, 'number', number, 'total', total, 'currency', 'EUR',
      'lines', jsonb_build_array(jsonb_build_object('sku', 'sku-' || number % 23, 'count', 1 + number % 3))),
    jsonb_build_object('tenant', case number % 2 when 0 then 'acme' else 'globex' end), correlation
  from placed
  returning id::text),
b as (
  insert into billing.outbox_events (aggregate_id, event_type, payload, correlation_id)
  select key, 'invoice.issued', jsonb_build_object('order', key, 'number', number, 'amount', total)::text, correlation
  from placed
  returning id::text),
p as (
  insert into payments.openoutbox_events (partition_key, event_type, payload, headers)
  select key, 'payment.taken', convert_to(jsonb_build_object('order', key, 'number', number, 'amount', total)::text, 'UTF8'),
    jsonb_build_object('correlation-id', correlation)
  from placed where $3 and number % 2 = 0
  returning event_id::text),
s as (
  insert into shipping.outbox (event_key, event_type, payload, correlation_id)
  select key, case number % 6 when 0 then 'parcel.handed-over' else 'parcel.packed' end,
    jsonb_build_object('order', key, 'number', number)::text, correlation::text
  from placed where $3 and number % 3 = 0
  returning event_id::text)
select 'orders.outbox', id from o union all
select 'billing.outbox_events', id from b union all
select 'payments.openoutbox_events', event_id from p union all
select 'shipping.outbox', event_id from s`;

const INVOICE = `
with placed as materialized (select $1::text as key, $3::int as number, gen_random_uuid() as correlation),
o as (
  insert into orders.outbox (aggregate_id, event_type, payload, correlation_id)
  select key, 'order.placed', jsonb_build_object('order', key, 'number', number, 'total', 42), correlation from placed
  returning id::text),
b as (
  insert into billing.outbox_events (aggregate_id, event_type, payload, correlation_id)
  select key, 'invoice.issued', $2, correlation from placed
  returning id::text)
select 'orders.outbox', id from o union all
select 'billing.outbox_events', id from b`;

const REFUND = `
insert into payments.openoutbox_events (partition_key, event_type, payload, headers)
values ($1, 'payment.refunded', convert_to($2, 'UTF8'), jsonb_build_object('refund-number', $3::int))
returning 'payments.openoutbox_events', event_id::text`;

interface ShoppersOptions {
  readonly url: string;
  readonly rate: number;
  readonly isShopping: boolean;
  /** Null if arrivals cannot be observed. */
  readonly book: ArrivalBook | null;
}

/** The traffic of the shop: orders at a steady rate, bursts and poison events. All on one connection, in order. */
export class Shoppers {
  isShopping: boolean;
  /** Number of events written to all sources. */
  written = 0;
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

  /** Writes many orders at once. */
  async burst(): Promise<void> {
    for (let round = 0; round < BURST.statements && !this.#stopped; round += 1) {
      await this.#place(BURST.keys, "burst", false);
    }
  }

  /** Writes an invoice that the destination rejects, and two more events of its key, which wait behind it. */
  async poison(): Promise<void> {
    this.#poisons += 1;
    await this.#writeLine(INVOICE, `poison-${this.#poisons}`, "poison");
  }

  /** Writes a refund that the destination rejects, so that the console has a dead letter from the start. */
  async refund(): Promise<void> {
    await this.#writeLine(REFUND, "refund-1", "overdrawn");
  }

  async #writeLine(sql: string, key: string, fault: string): Promise<void> {
    for (const kind of [fault, "waits", "waits"]) {
      this.#orders += 1;
      const number = this.#orders;
      // The customer number exceeds Number.MAX_SAFE_INTEGER: it must arrive and be shown as written.
      const payload = `{"order": "${key}", "number": ${number}, "customer": 9007199254740993, "${kind}": true}`;
      await this.#write(sql, [key, payload, number]);
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

  /** Writes run one after another. */
  async #write(sql: string, values: readonly unknown[]): Promise<void> {
    const work = this.#line.then(async () => {
      const client = await this.#connected();
      const { rows } = await client.query<[string, string]>({ text: sql, values: [...values], rowMode: "array" });
      this.written += rows.length;
      for (const [source, id] of rows) {
        for (const line of linesOf(source)) this.#options.book?.written(line, id);
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
