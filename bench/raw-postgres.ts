import pg from "pg";
import Cursor from "pg-cursor";
import type { TableKind } from "./outbox-tables.ts";

const PAGE_ROWS = 1_000;
const MARK_ROWS = 500;

export interface RawTimes {
  readonly readMs: number;
  readonly markMs: number;
}

/**
 * What the same driver needs at least for the same rows, written by hand on one connection: read all, mark all, and
 * nothing else. The relay is held against the sum.
 */
export async function rawPostgres(url: string, kind: TableKind): Promise<RawTimes> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return kind === "flag" ? await rawFlag(client) : await rawOpenOutbox(client);
  } finally {
    await client.end();
  }
}

async function rawFlag(client: pg.Client): Promise<RawTimes> {
  const ids: string[] = [];
  const startedMs = performance.now();
  await client.query("begin isolation level repeatable read read only");
  const cursor = client.query(
    new Cursor<string[]>(
      `select id, aggregate_id, event_type, payload::text, correlation_id, created_at::text
       from public.outbox where published = false order by created_at`,
      [],
      { rowMode: "array" },
    ),
  );
  for (let page = await cursor.read(PAGE_ROWS); page.length > 0; page = await cursor.read(PAGE_ROWS)) {
    for (const row of page) {
      Buffer.from(row[3]!);
      ids.push(row[0]!);
    }
  }
  await cursor.close();
  await client.query("commit");
  const readMs = performance.now() - startedMs;
  const markMs = await mark(
    client,
    ids,
    "update public.outbox set published = true, published_at = now() where id = any($1)",
  );
  return { readMs, markMs };
}

async function rawOpenOutbox(client: pg.Client): Promise<RawTimes> {
  const ids: string[] = [];
  const startedMs = performance.now();
  for (;;) {
    const { rows } = await client.query<string[]>({
      text: `with picked as (select event_id from public.openoutbox_events
          where status = 'PENDING' and available_at <= now()
          order by available_at, created_at limit ${MARK_ROWS} for update skip locked)
        update public.openoutbox_events e set status = 'DELIVERING', locked_by = 'raw', locked_at = now(), updated_at = now()
        from picked where e.event_id = picked.event_id
        returning e.event_id, e.event_type, e.partition_key, e.payload, e.headers::text, e.attempts, e.created_at::text`,
      rowMode: "array",
    });
    if (rows.length === 0) break;
    for (const row of rows) ids.push(row[0]!);
  }
  const readMs = performance.now() - startedMs;
  const markMs = await mark(
    client,
    ids,
    `update public.openoutbox_events set status = 'DELIVERED', delivered_at = now(), locked_by = null, locked_at = null,
      updated_at = now() where event_id = any($1)`,
  );
  return { readMs, markMs };
}

async function mark(client: pg.Client, ids: readonly string[], sql: string): Promise<number> {
  const startedMs = performance.now();
  for (let from = 0; from < ids.length; from += MARK_ROWS) await client.query(sql, [ids.slice(from, from + MARK_ROWS)]);
  return performance.now() - startedMs;
}
