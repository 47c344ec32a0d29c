import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer } from "node:net";
import { describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { BILLING, ORDERS } from "./outbox-tables.ts";
import { runCommand } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const server = serverOfFile();
const stage = stagesOn(server, "commands", [ORDERS, BILLING]);

async function insert({ sql }: Stage, table: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID());
  await sql(
    `insert into ${table} (id, aggregate_id, event_type, payload)
     select id, 'key-' || n % 5, 'order.placed', '{}' from unnest($1::uuid[]) with ordinality u(id, n)`,
    [ids],
  );
  return ids;
}

const idsIn = (stdout: string): string[] =>
  stdout
    .split("\n")
    .filter((line) => line.startsWith('{"id":'))
    .map((line) => (JSON.parse(line) as { id: string }).id);

describe("outbox-relay run --once", { concurrency: 2 }, () => {
  test("G2 A5 A14: the environment alone is enough; all is delivered and marked, exit 0", async () => {
    await using it = await stage();
    const ids = [...(await insert(it, "orders.outbox", 20)), ...(await insert(it, "billing.outbox_events", 20))];
    const env = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders,billing", OUTBOX_DESTINATION: "stdout:" };
    const { code, stdout, stderr } = await runCommand(["run", "--once"], env);
    assert.equal(code, 0, stderr);
    assert.deepEqual(idsIn(stdout).toSorted(), ids.toSorted());
    assert.match(stderr, /^40 events delivered$/m);
    const [left] = await it.sql<{ count: string }>("select count(*) from orders.outbox where not published");
    assert.equal(left?.count, "0");
    const again = await runCommand(["run", "--once"], { ...env, OUTBOX_SCHEMAS: "*" });
    assert.deepEqual([again.code, idsIn(again.stdout)], [0, []], again.stderr);
  });

  test("G2 D2: --only takes its own types and leaves the others to others, each of which has progress of its own", async () => {
    await using it = await stage();
    const placed = await insert(it, "orders.outbox", 3);
    const [other] = await it.sql<{ id: string }>(
      `insert into orders.outbox (id, aggregate_id, event_type, payload)
       values (gen_random_uuid(), 'key-0', 'invoice.issued', '{}') returning id`,
    );
    const env = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: "stdout:" };
    const orders = await runCommand(["run", "--once", "--only", "order.*"], env);
    assert.deepEqual([orders.code, idsIn(orders.stdout).toSorted()], [0, placed.toSorted()], orders.stderr);
    assert.doesNotMatch(orders.stderr, /no route matches/);
    const invoices = await runCommand(["run", "--once"], { ...env, OUTBOX_ONLY: "invoice.issued" });
    assert.deepEqual([invoices.code, idsIn(invoices.stdout)], [0, [other?.id]], invoices.stderr);
    const pipelines = await it.sql<{ name: string }>("select name from outbox_relay.pipelines order by name");
    assert.deepEqual(
      pipelines.map(({ name }) => name),
      ["orders.outbox->stdout[invoice.issued]", "orders.outbox->stdout[order.*]"],
    );
  });

  test("G2 A7: a schema without a table does not keep the others, is named, and exits 5", async () => {
    await using it = await stage();
    const ids = await insert(it, "orders.outbox", 3);
    const env = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "nowhere,orders", OUTBOX_DESTINATION: "stdout:" };
    const { code, stdout, stderr } = await runCommand(["run", "--once"], env);
    assert.equal(code, 5, stderr);
    assert.deepEqual(idsIn(stdout).toSorted(), ids.toSorted());
    assert.match(stderr, /^3 events delivered; not usable: nowhere\.outbox/m);
  });

  test("G2 A16: an event that a template cannot fill is a dead letter, exits 5, and stays one", async () => {
    await using it = await stage();
    const [first, second] = await insert(it, "orders.outbox", 2);
    await it.sql(`update orders.outbox set headers = '{"tenant": "acme"}' where id = $1`, [first]);
    const env = {
      DATABASE_URL: it.relayUrl,
      OUTBOX_TABLE: "orders.outbox",
      OUTBOX_DESTINATION: "stdout:",
      TOPIC_TEMPLATE: "{schema}.{header:tenant}.{type}",
      HEADERS_TEMPLATE: "x-from={table}",
    };
    const { code, stdout, stderr } = await runCommand(["run", "--once"], env);
    assert.equal(code, 5, stderr);
    assert.match(stderr, /1 event delivered; 1 dead letter$/m);
    const lines = stdout.split("\n").filter((line) => line.startsWith('{"id":'));
    const [message] = lines.map((line) => JSON.parse(line) as { id: string; topic: string; headers: object });
    assert.deepEqual([message?.id, message?.topic], [first, "orders.acme.order.placed"]);
    assert.equal(Reflect.get(message?.headers ?? {}, "x-from"), "outbox");
    const dead = await it.sql<{ id: string }>("select original_event_id as id from outbox_relay.failed_events");
    assert.deepEqual(dead, [{ id: second }]);
    assert.equal((await runCommand(["run", "--once"], env)).code, 5, "it is still there");
  });

  test("A15 B5 A6: * finds every table, flag and Open Outbox alike, each with the defaults of its kind", async () => {
    await using it = await stage();
    await it.sql(`create table public.openoutbox_events (event_id uuid primary key, event_type text not null,
        partition_key text, payload bytea not null, headers jsonb not null default '{}', status text not null default 'PENDING',
        attempts int not null default 0, last_error text, available_at timestamptz not null default now(), locked_by text,
        locked_at timestamptz, delivered_at timestamptz, created_at timestamptz not null default now(),
        updated_at timestamptz not null default now());
      grant usage on schema public to ${it.role}; grant select, update on public.openoutbox_events to ${it.role}`);
    const [flagged] = await insert(it, "orders.outbox", 1);
    const open = randomUUID();
    await it.sql("insert into openoutbox_events (event_id, event_type, payload) values ($1, 'user.created', 'x')", [
      open,
    ]);
    const env = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "*", OUTBOX_DESTINATION: "stdout:" };
    const { code, stdout, stderr } = await runCommand(["run", "--once"], env);
    assert.equal(code, 0, stderr);
    assert.match(
      stderr,
      /billing.outbox_events \(flag\)","orders.outbox \(flag\)","public.openoutbox_events \(openoutbox\)/,
    );
    const lines = stdout.split("\n").filter((line) => line.startsWith('{"id":'));
    const headers = new Map(
      lines.map((line) => JSON.parse(line) as { id: string; headers: object }).map((it) => [it.id, it.headers]),
    );
    assert.equal(Reflect.get(headers.get(open) ?? {}, "X-Event-ID"), open);
    assert.deepEqual([headers.size, Reflect.get(headers.get(flagged!) ?? {}, "X-Event-ID")], [2, undefined]);
    const [row] = await it.sql<{ status: string }>("select status from openoutbox_events");
    assert.equal(row?.status, "DELIVERED");
  });

  test("G2: neither a database nor a destination that cannot be reached is waited for: exit 1", async () => {
    const nobody = await freePort();
    const noDatabase = {
      DATABASE_URL: `postgres://me:hunter2@127.0.0.1:${nobody}/x`,
      OUTBOX_SCHEMAS: "a",
      OUTBOX_DESTINATION: "stdout:",
    };
    const first = await runCommand(["run", "--once"], noDatabase);
    assert.equal(first.code, 1, first.stderr);
    assert.match(first.stderr, /ECONNREFUSED.*\[DATABASE_UNREACHABLE\]/);
    assert.doesNotMatch(first.stderr + first.stdout, /hunter2/);
    await using it = await stage();
    await insert(it, "orders.outbox", 1);
    const noBroker = {
      DATABASE_URL: it.relayUrl,
      OUTBOX_SCHEMAS: "orders",
      KAFKA_BROKERS: `127.0.0.1:${nobody}`,
      DELIVERY: "at-least-once",
    };
    const second = await runCommand(["run", "--once"], noBroker);
    assert.equal(second.code, 1, second.stderr);
    assert.match(second.stderr, /not reachable: kafka/);
  });
});

describe("the relay's schema", { concurrency: 2 }, () => {
  test("G3: run refuses a missing and an older schema and names the command; --migrate does it", async () => {
    await server().createDatabase("bare");
    const env = { DATABASE_URL: server().databaseUrl("bare"), OUTBOX_SCHEMAS: "*", OUTBOX_DESTINATION: "stdout:" };
    const missing = await runCommand(["run", "--once"], env);
    assert.equal(missing.code, 2);
    assert.match(missing.stderr, /"outbox_relay" does not exist \[SCHEMA_MISSING\].*\n.*`outbox-relay migrate up`/);
    const migrated = await runCommand(["run", "--once", "--migrate"], env);
    assert.equal(migrated.code, 0, migrated.stderr);
    await server().query(
      "delete from outbox_relay.schema_versions where version = (select max(version) from outbox_relay.schema_versions)",
      [],
      "bare",
    );
    const older = await runCommand(["run"], { ...env, PORT: String(await freePort()) });
    assert.equal(older.code, 2);
    assert.match(older.stderr, /\[SCHEMA_OLDER\].*\n.*migrate up/);
  });

  test("G3: migrate up, status and down by environment; --sql prints what psql can run", async () => {
    await server().createDatabase("by_hand");
    const env = { DATABASE_URL: server().databaseUrl("by_hand"), DATABASE_SCHEMA: "my_relay" };
    const printed = await runCommand(["migrate", "up", "--sql"], { DATABASE_SCHEMA: "my_relay" });
    assert.equal(printed.code, 0, printed.stderr);
    await server().query(printed.stdout, [], "by_hand");
    const status = await runCommand(["migrate", "status", "-o", "json"], env);
    const { version, newest, pending } = JSON.parse(status.stdout) as { version: number; newest: number; pending: [] };
    assert.deepEqual([version, pending], [newest, []]);
    const nothing = await runCommand(["migrate", "up"], env);
    assert.match(nothing.stdout, /my_relay: nothing to do/);
    const down = await runCommand(["migrate", "down"], env);
    assert.match(down.stdout, /my_relay: down 1 /);
    const gone = await runCommand(["migrate", "status"], env);
    assert.match(gone.stdout, /my_relay: version 0 of \d+, not installed/);
    const typo = await runCommand(["migrate", "pu"], env);
    assert.deepEqual([typo.code, /write migrate up/.test(typo.stderr)], [2, true]);
  });
});

describe("settings that cannot be used", { concurrency: 2 }, () => {
  test("A14: every fault is named at once, with what to write, and nothing is started: exit 2", async () => {
    const { code, stderr, stdout } = await runCommand(["run"], {
      DATABASE_URL: server().url,
      OUTBOX_SCHEMAS: "a",
      KAFKA_BROKER: "localhost:9092",
      KAFKA_SSL: "flase",
      PORT: "x",
      KAFKA_PASSWORD: "hunter2",
    });
    assert.equal(code, 2);
    for (const told of [/KAFKA_BROKER .*did you mean KAFKA_BROKERS/, /KAFKA_SSL is "flase"/, /PORT is "x"/]) {
      assert.match(stderr, told);
    }
    assert.equal(stdout, "");
    assert.doesNotMatch(stderr, /hunter2/);
  });

  test("G4: a port that is in use is told before anything is started: exit 2", async () => {
    await using it = await stage();
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, "127.0.0.1", resolve));
    try {
      const port = (holder.address() as { port: number }).port;
      const env = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: "stdout:" };
      const { code, stderr } = await runCommand(["run"], { ...env, PORT: String(port) });
      assert.equal(code, 2);
      assert.match(stderr, new RegExp(`PORT ${port} on 127\\.0\\.0\\.1 is in use: set PORT to a free port`));
      assert.deepEqual(await it.sql("select from outbox_relay.instances"), []);
    } finally {
      holder.close();
    }
  });

  test("a role that may not log in, and an unknown command, are exit 2", async () => {
    await server().query("create role locked_out nologin");
    const env = { OUTBOX_SCHEMAS: "a", OUTBOX_DESTINATION: "stdout:", PORT: String(await freePort()) };
    const refused = await runCommand(["run"], { ...env, DATABASE_URL: server().databaseUrl("postgres", "locked_out") });
    assert.equal(refused.code, 2, refused.stderr);
    assert.match(refused.stderr, /role "locked_out" is not permitted to log in.*\[DATABASE_REFUSED\]/);
    const unknown = await runCommand(["rnu"], {});
    assert.deepEqual([unknown.code, /Did you mean run/.test(unknown.stderr)], [2, true]);
    const help = await runCommand(["run", "--help"], {});
    assert.equal(help.code, 0);
    assert.match(help.stdout, /OUTBOX_SCHEMAS +Schemas whose outbox tables are read/);
    assert.match((await runCommand(["--version"], {})).stdout, /^\d+\.\d+\.\d+\n$/);
  });
});

describe("outbox-relay grants", () => {
  test("A17 G2: a role with the printed rights alone can run, and may not delete", async () => {
    await using it = await stage();
    const ids = await insert(it, "orders.outbox", 3);
    const owner = { DATABASE_URL: it.url, OUTBOX_SCHEMAS: "orders,billing", OUTBOX_DESTINATION: "stdout:" };
    const role = 'least "quoted"';
    const printed = await runCommand(["grants", role], owner);
    assert.equal(printed.code, 0, printed.stderr);
    const quoted = role.replaceAll('"', '""');
    await it.sql(`create role "${quoted}" login; ${printed.stdout}`);
    const url = new URL(it.url);
    url.username = encodeURIComponent(role);
    const { code, stdout, stderr } = await runCommand(["run", "--once"], { ...owner, DATABASE_URL: url.href });
    assert.equal(code, 0, stderr);
    assert.deepEqual(idsIn(stdout).toSorted(), ids.toSorted());
    assert.doesNotMatch(printed.stdout, /delete on "?orders/i);
    assert.match((await runCommand(["grants", role], { ...owner, RETENTION: "7d" })).stdout, /delete on "?orders/i);
  });
});
