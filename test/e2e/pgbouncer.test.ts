import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { type PgbouncerServer, startPgbouncer } from "../servers/pgbouncer.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { told } from "./log-stage.ts";
import { ORDERS } from "./outbox-tables.ts";
import { runCommand, type ServiceProcess, startService } from "./service-process.ts";
import { openStage, type Stage } from "./stage.ts";

const DATABASE = "pooled";
const ROLE = `relay_${DATABASE}`;
const EVENTS = 300;
const KEYS = 7;

/** One of each kind, and how an event is written into it: `$1` is the type, `$2` the key, `$3` the payload. */
const SOURCES: Readonly<Record<string, string>> = {
  "orders.outbox": "insert into orders.outbox (event_type, aggregate_id, payload) values ($1, $2, $3::json)",
  "public.openoutbox_events":
    "insert into openoutbox_events (event_type, partition_key, payload) values ($1, $2, convert_to($3, 'UTF8'))",
  "shop.log": "select shop.log_publish($1, $2, $3)",
  "store.events": "insert into store.events (event_type, event_key, payload) values ($1, $2, $3)",
  "store.plain": "insert into store.plain (event_type, event_key, payload) values ($1, $2, $3)",
  "shop.written": "insert into shop.written (event_type, aggregate_id, payload) values ($1, $2, $3)",
};
/** Each is read by a service of its own: replication passes no pooler, and a column's name holds for all sources. */
const WAL = "shop.written";
const WITHOUT_XID = "store.plain";

const LOG_COLUMNS = `id bigint generated always as identity primary key, event_id uuid not null default gen_random_uuid() unique,
  event_type text not null, event_key text, payload text, created_at timestamptz not null default clock_timestamp()`;

const TABLES = `
create table public.openoutbox_events (event_id uuid primary key default gen_random_uuid(), event_type text not null,
  partition_key text, payload bytea not null, headers jsonb not null default '{}', status text not null default 'PENDING',
  attempts int not null default 0, last_error text, available_at timestamptz not null default clock_timestamp(),
  locked_by text, locked_at timestamptz, delivered_at timestamptz,
  created_at timestamptz not null default clock_timestamp(), updated_at timestamptz not null default now());
create index on public.openoutbox_events (available_at, created_at) where status = 'PENDING';
create schema store;
create table store.plain (${LOG_COLUMNS});
create table store.events (${LOG_COLUMNS}, tx xid8 not null default pg_current_xact_id());
create index on store.events (tx, id);
create table shop.written (id uuid primary key default gen_random_uuid(), event_type text not null,
  aggregate_id text, payload text, created_at timestamptz not null default clock_timestamp());
create publication written for table shop.written with (publish = 'insert');
alter role ${ROLE} replication;
grant usage on schema shop, store to ${ROLE};
grant select on shop.written, shop.log_default, store.plain to ${ROLE}`;

interface Line {
  readonly id: string;
  readonly type: string;
  readonly key: string;
  readonly payload: string;
}

function linesOf({ stdout }: ServiceProcess): Line[] {
  return stdout()
    .split("\n")
    .filter((line) => line.startsWith('{"id":') && line.endsWith("}"))
    .map((line) => JSON.parse(line) as Line);
}

/** In vain, the error shows what the service said. */
async function healthy(service: ServiceProcess): Promise<void> {
  await service.becomes("healthy").catch(async (cause) => {
    const health = await service.get("/health").catch(() => null);
    throw new Error(`${health?.body}\n${service.stderr()}`, { cause });
  });
}

/** In transactions of ten, over the pool: as an application behind the same PgBouncer does. */
async function write({ pool }: Stage, source: string): Promise<void> {
  for (let first = 0; first < EVENTS; first += 10) {
    const client = await pool.connect();
    await client.query("begin");
    for (let n = first; n < first + 10; n += 1) {
      await client.query(SOURCES[source]!, [source, `k${n % KEYS}`, JSON.stringify({ n })]);
    }
    await client.query("commit");
    client.release();
  }
}

describe("PgBouncer in transaction mode", () => {
  let server: PostgresServer;
  let bouncer: PgbouncerServer;
  let stage: Stage;
  let env: Readonly<Record<string, string>>;

  before(async () => {
    server = await startPostgres({ version: 18, flags: ["-c", "fsync=on"] });
    bouncer = await startPgbouncer({ targetPort: server.port, users: ["postgres", ROLE] });
    // The relay's schema is made through it too.
    const place = { databaseUrl: bouncer.databaseUrl, query: (sql: string) => server.query(sql) };
    stage = await openStage(place, { database: DATABASE, tables: [ORDERS] });
    env = {
      ...{ DATABASE_URL: stage.relayUrl, OUTBOX_DESTINATION: "stdout:", OUTBOX_SCHEMAS: "orders,public" },
      ...{ OUTBOX_MANAGED: "shop.log", OUTBOX_EVENT_TABLES: "store.events", POLL_INTERVAL_MS: "100" },
    };
    const owner = { ...env, DATABASE_URL: stage.url };
    await told(["migrate", "up"], owner);
    await stage.sql(TABLES);
    await stage.sql(await told(["grants", ROLE], owner));
  });
  after(async () => {
    await stage?.[Symbol.asyncDispose]();
    await bouncer?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  test("H1: doctor finds nothing wrong behind it, after migrate has worked through it", async () => {
    const { code, stdout, stderr } = await runCommand(["doctor"], env);
    assert.equal(code, 0, `${stdout}${stderr}`);
  });

  test("H1 A1 A3 D9: every kind of table source delivers through it, once and in order; the write-ahead log beside it", async () => {
    const direct = {
      DATABASE_URL: server.databaseUrl(DATABASE, ROLE, "secret"),
      OUTBOX_WAL: WAL,
      OUTBOX_WAL_PUBLICATION: "written",
    };
    const withoutXid = { DATABASE_URL: stage.relayUrl, OUTBOX_EVENT_TABLES: WITHOUT_XID, OUTBOX_COLUMNS: "xid=none" };
    await using stack = new AsyncDisposableStack();
    const services: ServiceProcess[] = [];
    for (const settings of [env, withoutXid, direct]) {
      const more = { OUTBOX_DESTINATION: "stdout:", PORT: String(await freePort()) };
      services.push(stack.use(startService(["run"], { ...settings, ...more })));
    }
    await Promise.all(services.map(healthy));
    // What is written before the slot is made is not in it.
    await services.at(-1)?.logged("a lane was taken", ({ event }) => event === "LaneTaken");
    await Promise.all(Object.keys(SOURCES).map((source) => write(stage, source)));
    const lines = () => services.flatMap(linesOf);
    const wanted = Object.keys(SOURCES).length * EVENTS;
    await until("all events are printed", () => lines().length >= wanted).catch((cause) => {
      throw new Error(`${lines().length} of ${wanted}\n${services.map(({ stderr }) => stderr()).join("\n")}`, {
        cause,
      });
    });
    for (const service of services) service.kill("SIGTERM");
    for (const { ended } of services) assert.equal((await ended).code, 0);
    const byKey = Map.groupBy(lines(), ({ type, key }) => `${type} ${key}`);
    for (const source of Object.keys(SOURCES)) {
      for (let key = 0; key < KEYS; key += 1) {
        const numbers = byKey.get(`${source} k${key}`)?.map(({ payload }) => (JSON.parse(payload) as { n: number }).n);
        const all = Array.from({ length: EVENTS }, (_, n) => n).filter((n) => n % KEYS === key);
        assert.deepEqual(numbers, all, `${source} k${key}`);
      }
    }
  });
});
