import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { openOutboxTableSql } from "../servers/openoutbox-table.ts";
import { until } from "../servers/until.ts";
import { told } from "./log-stage.ts";
import { type ServiceProcess, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";

const server = serverOfFile();
const openStage = stagesOn(server, "wide", []);

/** What the documents promise, whatever waits. */
const MEMORY_MB_MAX = 256;

const FLAGGED = `(id bigint generated always as identity primary key, aggregate_id text, event_type text not null,
  payload text, headers jsonb, correlation_id text, created_at timestamptz default clock_timestamp(),
  published_at timestamptz)`;

/** Rows of every width, wide in another column each time; `i` counts them. */
const CONTENT = `'k' || i % 50 || case when i % 7 = 1 then repeat('k', 8000) else '' end as key,
  't' || i % 3 || case when i % 7 = 2 then repeat('t', 8000) else '' end as type,
  convert_to(case when i % 7 = 3 then repeat('p', 200000) else '{}' end, 'UTF8') as payload,
  case when i % 7 in (0, 2, 4) then jsonb_build_object('h', repeat('h', 150000 + i), 'e', i)
    when i % 7 = 5 then (select jsonb_object_agg('n' || n, repeat('v', 1000)) from generate_series(1, 100) n)
    else '{}' end as headers,
  case when i % 7 = 6 then repeat('c', 8000) else 'c' end as correlation_id`;

async function peakMb({ pid }: ServiceProcess): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

test("H1 A15 256 MB suffice for rows that are wide in any column, in tables of several kinds at once", async () => {
  await using stage = await openStage();
  const rows = 1_000;
  await stage.sql(`create schema flags; create table flags.outbox ${FLAGGED};
    create schema open; ${openOutboxTableSql("open.openoutbox_events")}
    insert into flags.outbox (aggregate_id, event_type, payload, headers, correlation_id)
    select key, type, convert_from(payload, 'UTF8'), headers, correlation_id
    from (select i, ${CONTENT} from generate_series(1, ${rows}) i) c order by i;
    insert into open.openoutbox_events (event_id, event_type, partition_key, payload, headers)
    select gen_random_uuid(), type, key, payload, headers
    from (select i, ${CONTENT} from generate_series(1, ${rows}) i) c order by i`);
  await using service = startService(["run"], {
    DATABASE_URL: stage.url,
    OUTBOX_SCHEMAS: "flags,open",
    OUTBOX_DESTINATION: "discard:",
    PORT: String(await freePort()),
  });
  const left = async () =>
    (
      await stage.sql<{ left: number }>(
        `select (select count(*) from flags.outbox where published_at is null)::int
          + (select count(*) from open.openoutbox_events where status <> 'DELIVERED')::int as left`,
      )
    )[0]!.left;
  const isOver = async () => (await Promise.race([service.ended, left()])) === 0;
  await until("all is delivered", isOver).catch(async (error: unknown) => {
    throw new Error(`${await left()} rows are left\n${service.stderr().slice(-2_000)}`, { cause: error });
  });
  const peak = await peakMb(service);
  service.kill("SIGTERM");
  assert.equal((await service.ended).code, 0);
  assert.ok(peak < MEMORY_MB_MAX, `${peak} MB`);
});

test("H1 D9 from the write-ahead log 256 MB suffice for rows within the limits; a much larger one is a dead letter", async () => {
  await using stage = await openStage();
  await stage.sql(`create schema shop; create table shop.log (id uuid primary key default gen_random_uuid(),
    event_type text, aggregate_id text, payload text)`);
  const write = (megabytes: number) =>
    stage.sql(
      "insert into shop.log (event_type, aggregate_id, payload) values ('t', $1::text, repeat('x', $1::text::int << 20))",
      [String(megabytes)],
    );
  const env = { DATABASE_URL: stage.url, OUTBOX_WAL: "shop.log", OUTBOX_DESTINATION: "discard:", LOG_START: "now" };
  await told(["migrate", "up"], env);
  await using service = startService(["run"], { ...env, PORT: String(await freePort()) });
  await service.becomes("healthy");
  const counted = async (metric: string) =>
    Number(new RegExp(`^${metric}(?:\\{.*\\})? (\\d+)$`, "m").exec((await service.get("/metrics")).body)?.[1] ?? 0);
  const delivered = (count: number) =>
    until(`${count} are delivered`, async () => (await counted("outbox_relay_events_published_total")) === count);
  for (let n = 1; n <= 4; n += 1) await write(15);
  await delivered(4);
  const peak = await peakMb(service);
  assert.ok(peak < MEMORY_MB_MAX, `${peak} MB`);
  await write(64);
  await until("it is a dead letter", async () => (await counted("outbox_relay_failed_events")) === 1);
  await write(1);
  await delivered(5);
});
