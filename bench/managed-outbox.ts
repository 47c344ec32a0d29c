import pg from "pg";
import { managedTableSql } from "../src/postgres/managed/managed-table.sql.ts";
import type { PostgresServer } from "../test/servers/postgres.ts";
import { fillInSteps } from "./fill-in-steps.ts";
import type { FillOptions } from "./outbox-tables.ts";

export const MANAGED = { schema: "public", table: "outbox" } as const;
const PAGE_ROWS = 1_000;

/** What the relay makes headers and record of, in the order of `messagesOf`. */
export const MANAGED_ROWS = `select event_id::text, correlation_id,
    to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), event_key, payload
  from public.outbox order by id`;

/** Of one event with the number `n`. */
export const MANAGED_INSERT = `insert into public.outbox (event_type, event_key, payload, correlation_id)
  select 'order.created', md5(($1::int % 1000)::text), '{"n":' || $1::int || ',"x":"' || repeat('x', 170) || '"}',
    gen_random_uuid()::text`;

/** A fresh managed outbox with events that nobody has read. */
export async function fillManaged(postgres: PostgresServer, options: FillOptions): Promise<void> {
  await postgres.query("drop table if exists public.outbox cascade");
  await postgres.query(managedTableSql({ table: MANAGED, payload: "text", partition: "1 day", wakeUp: true }));
  await fillInSteps(postgres, ["event_type", "event_key", "payload", "correlation_id"], options);
}

/** The milliseconds that the driver needs at least to read all rows by position, and nothing else. */
export async function rawRead(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const startedMs = performance.now();
    let last = "0";
    for (;;) {
      const { rows } = await client.query<string[]>({
        name: "page",
        text: `select id, event_id, event_type, event_key, payload, headers::text, correlation_id, created_at::text
          from public.outbox where id > $1::bigint order by id limit ${PAGE_ROWS}`,
        values: [last],
        rowMode: "array",
      });
      if (rows.length === 0) return performance.now() - startedMs;
      for (const row of rows) Buffer.from(row[4]!);
      last = rows.at(-1)![0]!;
    }
  } finally {
    await client.end();
  }
}
