import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { openOutboxTableSql } from "../servers/openoutbox-table.ts";
import { assertWithin } from "../servers/pace.ts";
import { until } from "../servers/until.ts";
import { type Ended, runCommand, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";

const server = serverOfFile();
const stage = stagesOn(server, "hour", []);

async function done(ending: Promise<Ended>): Promise<string> {
  const { code, stderr, stdout } = await ending;
  assert.equal(code, 0, stderr + stdout);
  return stdout;
}

interface Finding {
  readonly severity: string;
  readonly check: string;
  readonly what: string;
  readonly fix: string;
}

/** What the doctor says beside the server of a test having no fsync, and that nobody runs. */
async function findings(env: Record<string, string>): Promise<readonly Finding[]> {
  const { code, stderr, stdout } = await runCommand(["doctor", "-o", "json"], env);
  assert.ok(code === 0 || code === 3, stderr);
  const others = /^fsync is off|^Lanes without a live owner|^max_slot_wal_keep_size is not set/;
  return (JSON.parse(stdout) as Finding[]).filter(({ what }) => !others.test(what));
}

const TABLES = `
create table app.outbox (id bigserial primary key, aggregate_id text, event_type text not null, payload jsonb,
  created_at timestamptz default clock_timestamp(), published_at timestamptz);
create index on app.outbox (id) where published_at is null;
${openOutboxTableSql("app.openoutbox_events")}
create schema jobs; create table jobs.outbox (id uuid primary key default gen_random_uuid(), position bigint generated always as identity,
  aggregate_id text, event_type text not null, payload jsonb, status text not null default 'Pending',
  attempts int not null default 0, next_attempt_at timestamptz, last_error text);
create index on jobs.outbox (position) where status = 'Pending';
create schema intents; create table intents.outbox (id uuid primary key default gen_random_uuid(), position bigint generated always as identity,
  aggregate_id text, intent jsonb not null, dispatched_at timestamptz);
create index on intents.outbox (position) where dispatched_at is null;
create table app.facts (position bigint generated always as identity primary key, xid xid8 default pg_current_xact_id(), event_id uuid unique default gen_random_uuid(),
  aggregate_id text, event_type text not null, payload text, created_at timestamptz default clock_timestamp());
create index on app.facts (xid, position);
create table app.heard (id uuid primary key default gen_random_uuid(), aggregate_id text, event_type text not null, payload text);`;

const SOURCES = {
  OUTBOX_SCHEMAS: "app,jobs,intents",
  OUTBOX_EVENT_TABLES: "app.facts",
  OUTBOX_WAL: "app.heard,message:app",
  OUTBOX_MANAGED: "app.log",
  RETENTION: "7d",
};

test("A17 with the printed grants alone every kind of source is set up, kept up, read and smoked", async () => {
  await using it = await stage();
  // Not a superuser: what is printed has to be enough for the owner of the tables too.
  await it.sql(`create role hour_owner login createrole; grant create on database ${new URL(it.url).pathname.slice(1)} to hour_owner;
    drop schema outbox_relay cascade; set role hour_owner; create schema app; ${TABLES}; reset role`);
  const url = (user: string) => server().databaseUrl(new URL(it.url).pathname.slice(1), user, "secret");
  const owner = { DATABASE_URL: url("hour_owner"), ...SOURCES };
  await done(runCommand(["migrate", "up"], owner));
  const asOwner = (sql: string) => it.sql(`set role hour_owner; ${sql}; reset role`);
  await asOwner("create role hour_relay login");
  const relay = { ...owner, DATABASE_URL: url("hour_relay"), OUTBOX_DESTINATION: "stdout:" };

  const [none] = await findings(relay);
  assert.deepEqual([none?.check, none?.severity], ["grants", "error"]);
  const printed = await done(runCommand(["grants", "hour_relay", "--with-smoke"], owner));
  await it.sql("alter role hour_relay replication"); // the one statement that only a superuser can run
  await asOwner(printed.replace(/^alter role .* replication;.*$/m, ""));
  assert.deepEqual(await findings(relay), []);

  await it.sql(`alter table app.log owner to hour_owner; grant select on app.log to hour_relay`);
  {
    await using foreign = startService(["run"], { ...relay, PORT: String(await freePort()) });
    const { problems } = await foreign.becomes("degraded");
    await until("health says so", async () => /The upkeep of app\.log fails/.test((await foreign.get("/health")).body));
    assert.ok(Array.isArray(problems));
    foreign.kill("SIGTERM");
    await foreign.ended;
  }
  const [lost] = await findings(relay);
  assert.match(lost?.what ?? "", /^The upkeep of app\.log fails: .*must be owner of table log/);
  await asOwner(lost?.fix ?? "");

  await using service = startService(["run"], { ...relay, PORT: String(await freePort()) });
  await service.becomes("healthy").catch(async (error: unknown) => {
    throw new Error((await service.get("/health")).body, { cause: error });
  });
  const tables = ["app.outbox", "app.openoutbox_events", "jobs.outbox", "intents.outbox", "app.facts", "app.log"];
  for (const table of tables) {
    const smoked = await done(runCommand(["smoke", "--table", table, "--timeout", "60s"], relay));
    assert.match(smoked, /^delivered/, table);
  }
  await asOwner("insert into app.log (event_type, payload) values ('by.owner', '{}')");
  await until("the owner still writes", () => service.stdout().includes("by.owner"));
  await service.becomes("healthy");
});

test("H12 the README's library example ends by itself soon after it was stopped", async () => {
  await using it = await stage();
  await it.sql(`create schema orders; create table orders.outbox (id bigint generated always as identity primary key,
    aggregate_id text, event_type text not null, payload jsonb, published_at timestamptz);
    insert into orders.outbox (aggregate_id, event_type, payload) values ('k', 'order.placed', '{}')`);
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const [, example = ""] = /## As a library\n\n```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  const index = new URL("../../src/index.ts", import.meta.url).href;
  // No broker: what the example is about is the database.
  const broker = `const kafkaPublisher = () => ({ name: "kafka", capabilities: { keyOrderInBatch: false, deduplicates: false },
    publish: async (batch, report) => batch.forEach((_, at) => report(at, { kind: "delivered" })), close: async () => {} });`;
  const program = example
    .replace('"outbox-relay"', JSON.stringify(index))
    .replace(/import \{ kafkaPublisher \}.*\n/, `${broker}\n`);
  const args = ["--input-type=module", "-e", program];
  await using running = startService(args, { DATABASE_URL: it.url }, process.execPath);
  await until("the event is delivered", async () => {
    const [left] = await it.sql<{ n: string }>("select count(*) n from orders.outbox where published_at is null");
    return left?.n === "0";
  });
  const stoppedMs = performance.now();
  running.kill("SIGTERM");
  const { code, stderr } = await running.ended;
  assert.equal(code, 0, stderr);
  // Idle connections would have kept it for 30 s.
  await assertWithin(performance.now() - stoppedMs, 20_000, "the end");
});
