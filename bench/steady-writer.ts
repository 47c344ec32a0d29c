import pg from "pg";
import { nowMs } from "./kafka-consumer.ts";

const TICK_MS = 5;
const CONNECTIONS = 8;

const FLAG_INSERT = `insert into public.outbox (aggregate_id, aggregate_type, event_type, payload, correlation_id, created_at)
  select md5(($1::int % 1000)::text)::uuid, 'order', 'order.created',
    jsonb_build_object('n', $1::int, 'x', repeat('x', 170)),
    gen_random_uuid(), clock_timestamp()`;

/** What the writer knows of the event with this number, by the system's clock. */
export interface WrittenEvent {
  readonly sentMs: number;
  /** The answer to the commit was there. */
  readonly committedMs: number;
}

/**
 * Writes events at an even rate, each in a transaction of its own. Each holds its number `n`, which is its place in
 * what is returned. Of an `insert` the number is the only value; by default it is one into the flag table.
 */
export async function writeSteadily(
  url: string,
  perSecond: number,
  seconds: number,
  insert = FLAG_INSERT,
): Promise<WrittenEvent[]> {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS });
  const total = Math.round(perSecond * seconds);
  const written: WrittenEvent[] = [];
  const inserts: Promise<void>[] = [];
  const write = async (n: number): Promise<void> => {
    const client = await pool.connect();
    const sentMs = nowMs();
    await client.query({ name: "insert", text: insert, values: [n] });
    written[n] = { sentMs, committedMs: nowMs() };
    client.release();
  };
  const startedMs = performance.now();
  try {
    await new Promise<void>((resolve) => {
      const timer = setInterval(() => {
        // By the clock, not by the tick: a late tick writes what the missed ones would have written.
        const due = Math.min(total, Math.floor(((performance.now() - startedMs) / 1_000) * perSecond));
        while (inserts.length < due) inserts.push(write(inserts.length));
        if (due < total) return;
        clearInterval(timer);
        resolve();
      }, TICK_MS);
    });
    await Promise.all(inserts);
    return written;
  } finally {
    await pool.end();
  }
}
