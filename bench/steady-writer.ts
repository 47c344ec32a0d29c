import pg from "pg";

const TICK_MS = 5;
const CONNECTIONS = 8;

const INSERT = `insert into public.outbox (aggregate_id, aggregate_type, event_type, payload, correlation_id, created_at)
  select md5(($1::int % 1000)::text)::uuid, 'order', 'order.created',
    jsonb_build_object('n', $1::int, 'at', extract(epoch from clock_timestamp()) * 1000, 'x', repeat('x', 150)),
    gen_random_uuid(), clock_timestamp()`;

/**
 * Writes events at an even rate, each in a transaction of its own. Each holds its number `n` and, as `at`, the
 * database's clock at its insert in milliseconds. Returns how long each insert with its commit took for the writer.
 */
export async function writeSteadily(url: string, perSecond: number, seconds: number): Promise<number[]> {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS });
  const total = Math.round(perSecond * seconds);
  const commitMs: number[] = [];
  const inserts: Promise<void>[] = [];
  const insert = async (n: number): Promise<void> => {
    const client = await pool.connect();
    const startedMs = performance.now();
    await client.query({ name: "insert", text: INSERT, values: [n] });
    commitMs.push(performance.now() - startedMs);
    client.release();
  };
  const startedMs = performance.now();
  try {
    await new Promise<void>((resolve) => {
      const timer = setInterval(() => {
        // By the clock, not by the tick: a late tick writes what the missed ones would have written.
        const due = Math.min(total, Math.floor(((performance.now() - startedMs) / 1_000) * perSecond));
        while (inserts.length < due) inserts.push(insert(inserts.length));
        if (due < total) return;
        clearInterval(timer);
        resolve();
      }, TICK_MS);
    });
    await Promise.all(inserts);
    return commitMs;
  } finally {
    await pool.end();
  }
}
