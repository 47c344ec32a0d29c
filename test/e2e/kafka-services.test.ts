import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { grantsFor } from "../../src/postgres/grants.ts";
import { parseTableName } from "../../src/postgres/identifiers.ts";
import { freePort } from "../servers/free-port.ts";
import { type KafkaServer, startKafka } from "../servers/kafka.ts";
import { followLines, type KafkaRecord, readTopics } from "../servers/kafka-reader.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until, untilEqual } from "../servers/until.ts";
import { sample } from "./kafka-checks.ts";
import { runCommand, type ServiceProcess, startService } from "./service-process.ts";
import { BYTES, JSON_TEXTS, SERVICES, type ServiceTable, TEXTS } from "./service-tables.ts";

const ROLE = "relay";
const DATABASE = "services";
const BROKEN = ["audit.outbox", "legacy.outbox"];
const HEADERS = { tenant: "acme", "x-straße": "grün 😀" };
const CORRELATION = "3f0f6a2e-6d0c-4d4b-9a57-1c1f1f0f0f0f";

let postgres: PostgresServer;
let kafka: KafkaServer;
let pool: pg.Pool;
let service: ServiceProcess;

before(async () => {
  [postgres, kafka] = await Promise.all([startPostgres({ version: 18 }), startKafka()]);
  await postgres.createDatabase(DATABASE);
  const migrated = await runCommand(["migrate", "up"], { DATABASE_URL: postgres.databaseUrl(DATABASE) });
  assert.equal(migrated.code, 0, migrated.stderr);
  // What is expected is made of the server's own text of times.
  const options = "-c timezone=UTC -c datestyle=ISO";
  pool = new pg.Pool({ connectionString: postgres.databaseUrl(DATABASE), max: 3, options });
  const shop = SERVICES[0]!;
  await sql(`
    create role ${ROLE} login;
    ${SERVICES.map(({ name, columns }) => tableSql(name, columns)).join("\n")}
    ${tableSql("audit.outbox", shop.columns)}
    ${tableSql("legacy.outbox", shop.columns.replace(/payload \w+,/, ""))}`);
  // To the table of audit nobody has given a right.
  const tables = [...SERVICES.map(({ name }) => name), "legacy.outbox"].map(parseTableName);
  await sql(grantsFor({ role: ROLE, tables }));
  service = startService(["run"], {
    DATABASE_URL: postgres.databaseUrl(DATABASE, ROLE, "secret"),
    OUTBOX_SCHEMAS: "audit,billing,legacy,mail,shop,stock,users",
    KAFKA_BROKERS: kafka.brokers,
    PORT: String(await freePort()),
  });
  await service.becomes("degraded");
});

after(async () => {
  await service?.[Symbol.asyncDispose]();
  await pool?.end();
  await kafka?.[Symbol.asyncDispose]();
  await postgres?.[Symbol.asyncDispose]();
});

function tableSql(name: string, columns: string): string {
  return `create schema if not exists ${parseTableName(name).schema}; create table ${name} (${columns});`;
}

async function sql<Row extends Record<string, unknown>>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
  const { rows } = await pool.query<Row>(text, [...values]);
  return rows;
}

async function insert({ name, ids, hasMore }: ServiceTable, event: Readonly<Record<string, unknown>>): Promise<void> {
  const { id, ...common } = event;
  const values = {
    ...(ids === "bigint" ? {} : { id }),
    ...common,
    ...(hasMore ? { headers: HEADERS, correlation_id: CORRELATION } : {}),
  };
  const columns = Object.keys(values);
  const places = columns.map((_, at) => `$${at + 1}`);
  await sql(`insert into ${name} (${columns.join(", ")}) values (${places.join(", ")})`, Object.values(values));
}

function eventOf(table: ServiceTable, n: number): Readonly<Record<string, unknown>> {
  return {
    id: table.ids === "uuid" ? crypto.randomUUID() : `event/${n} "ö"`,
    aggregate_id: n % 7 === 6 ? null : n % 7,
    event_type: `${table.name.replace(".", "-")}.type-${n % 2}`,
    payload: payloadOf(table, n) ?? payloadOf(table, 0),
  };
}

interface Stored {
  readonly id: string;
  readonly key: string | null;
  readonly type: string;
  /** A row without a payload is an event with an empty one. */
  readonly body: string;
  readonly at: string;
}

/** What a reader must see of a row, made of what the database itself says of it. */
async function expectedOf({ name, payload, hasMore }: ServiceTable): Promise<object[]> {
  const bytes = payload === "bytea" ? "payload" : "convert_to(payload::text, 'UTF8')";
  const rows = await sql<Stored & Record<string, unknown>>(
    `select id::text, aggregate_id::text as key, event_type as type, coalesce(encode(${bytes}, 'hex'), '') as body,
       to_char(created_at::timestamptz at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at from ${name}`,
  );
  return rows.map(({ id, key, type, body, at }) => ({
    topic: type,
    key,
    body: short(body),
    headers: { "event-id": id, "created-at": at, ...(hasMore ? { ...HEADERS, "correlation-id": CORRELATION } : {}) },
  }));
}

/** Equal when the bytes are, and fit to be shown. */
function short(hex: string): string {
  return hex.length <= 200 ? hex : createHash("sha256").update(hex).digest("hex");
}

function seenIn({ topic, key, value, headers }: KafkaRecord): object {
  return {
    topic,
    key: key?.toString() ?? null,
    body: value === null ? null : short(value.toString("hex")),
    headers: Object.fromEntries(headers.map(([name, text]) => [name, text?.toString()])),
  };
}

/** The n-th payload of a column of this type. */
function payloadOf({ payload }: ServiceTable, n: number): string | Buffer | undefined {
  if (payload === "bytea") return BYTES[n];
  if (payload === "text") return TEXTS[n];
  // What JSON allows and a jsonb column does not.
  return JSON_TEXTS.filter((text) => payload === "json" || !text.includes("\\u0000"))[n];
}

const sorted = (things: readonly object[]): object[] =>
  things.toSorted((one, other) => (sortKey(one) < sortKey(other) ? -1 : 1));

function sortKey(thing: object): string {
  const { topic, headers } = thing as { topic: string; headers: Readonly<Record<string, string>> };
  return `${topic} ${headers["event-id"]}`;
}

const pendingCount = async (tables: readonly ServiceTable[]): Promise<number> => {
  const parts = tables.map(({ name, pending }) => `(select count(*) from ${name} where ${pending})`);
  const [row] = await sql<{ count: string }>(`select ${parts.join(" + ")} as count`);
  return Number(row?.count);
};

describe("five services' tables of different shapes, and two that are broken", () => {
  test("A2 A5 A6 A16 A17: every event is in Kafka once, byte by byte as stored, and its row says so", async () => {
    for (const table of SERVICES) {
      const events = Array.from({ length: 40 }, (_, n) => eventOf(table, n));
      await Promise.all(events.map((event) => insert(table, event)));
    }
    // One flag of two is enough to be unpublished; what both call published is none of our business.
    const mail = SERVICES.find(({ name }) => name === "mail.outbox")!;
    await insert(mail, { ...eventOf(mail, 40), published: true });
    await insert(mail, { ...eventOf(mail, 41), delivered_at: new Date() });
    await insert(SERVICES[0]!, { ...eventOf(SERVICES[0]!, 40), payload: null });
    await insert(mail, { ...eventOf(mail, 42), event_type: "never.sent", published: true, delivered_at: new Date() });
    await until("all rows are marked", async () => (await pendingCount(SERVICES)) === 0);

    const expected = (await Promise.all(SERVICES.map(expectedOf))).flat() as { topic: string }[];
    const sent = expected.filter(({ topic }) => topic !== "never.sent");
    assert.equal(sent.length, sum(SERVICES.map(totalOf)));
    const topics = [...new Set(sent.map(({ topic }) => topic))];
    const records = await readTopics(kafka.directBrokers, topics);
    assert.deepEqual(sorted(records.map(seenIn)), sorted(sent));
    const [flags] = await sql("select bool_and(published and delivered_at is not null) as both from mail.outbox");
    assert.deepEqual(flags, { both: true }, "all flags are set together");
    const states = () =>
      sql(
        `select schema_name || '.' || table_name as name, total_events_published::int as total,
         last_published_event_id is not null and last_poll_time is not null as knows
       from outbox_relay.relay_state where total_events_published > 0 order by 1`,
      );
    const totals = SERVICES.map((table) => ({ name: table.name, total: totalOf(table), knows: true }));
    await untilEqual("the states follow", states, totals.toSorted(byName));
  });

  test("A7: what is broken is named by health, metrics, log and the console's overview, and only that", async () => {
    const { problems } = (await service.becomes("degraded")) as { problems: { name: string; reason: string }[] };
    assert.deepEqual(problems.map(({ name }) => name).toSorted(), [...BROKEN.map((name) => `${name}->kafka`)]);
    const reasonOf = (table: string) => problems.find(({ name }) => name === `${table}->kafka`)?.reason ?? "";
    assert.match(reasonOf("audit.outbox"), /role relay lacks .*USAGE on schema audit.*SELECT on "audit"."outbox"/);
    assert.match(reasonOf("legacy.outbox"), /legacy.*payload.*\[COLUMN_MISSING\]/);
    await untilEqual(
      "the counters follow",
      async () => publishedBy((await service.get("/metrics")).body),
      SERVICES.map(totalOf),
    );
    const { body } = await service.get("/metrics");
    const overview = (await service.get("/api/v1/overview")).json() as { problems: { what: string }[] };
    const told = (name: string) => overview.problems.some(({ what }) => what.includes(`${name}->kafka`));
    for (const name of BROKEN) {
      assert.ok(told(name), JSON.stringify(overview.problems));
      assert.equal(sample(body, `outbox_relay_source_broken{source="${name}"}`), 1);
      await service.logged(`${name} is broken`, (line) => line.level === "error" && line.pipeline === `${name}->kafka`);
    }
    for (const table of SERVICES) {
      assert.equal(told(table.name), false, table.name);
      assert.equal(sample(body, `outbox_relay_source_broken{source="${table.name}"}`), 0);
    }
  });

  test("A1: an event is at a reader within 30 s of its insert, beside the broken ones", async (t) => {
    const count = 300;
    await kafka.createTopic("shop.latency", { partitions: 3 });
    const insertedMs = new Map<string, number>();
    const tookMs = new Map<string, number>();
    const arrived = (key: string) => {
      assert.equal(tookMs.has(key), false, `${key} came twice`);
      tookMs.set(key, performance.now() - insertedMs.get(key)!);
    };
    await using reader = await followLines(kafka.directBrokers, "shop.latency", ["-f", "%k\\n"], arrived);
    for (let n = 0; n < count; n += 1) {
      insertedMs.set(`key-${n}`, performance.now());
      await insert(SERVICES[0]!, {
        id: crypto.randomUUID(),
        aggregate_id: `key-${n}`,
        event_type: "shop.latency",
        payload: "{}",
      });
    }
    await until("all have arrived", () => {
      reader.check();
      return tookMs.size === count;
    });
    const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => quantile([...tookMs.values()], share)) as [
      number,
      number,
      number,
    ];
    t.diagnostic(`insert to reader: P50 ${Math.round(p50)} ms, P95 ${Math.round(p95)} ms, P99 ${Math.round(p99)} ms`);
    assert.ok(p95 <= 30_000 && p99 <= 60_000);
  });

  test("A7: what was broken comes in by itself as soon as it is mended", async () => {
    await sql("alter table legacy.outbox add column payload json");
    await sql(grantsFor({ role: ROLE, tables: [parseTableName("audit.outbox")] }));
    for (const name of BROKEN) await insert({ ...SERVICES[0]!, name }, { id: crypto.randomUUID(), event_type: name });
    await service.becomes("healthy");
    for (const name of BROKEN) {
      await until(`${name} is marked`, async () => (await pendingCount([{ ...SERVICES[0]!, name }])) === 0);
    }
    const records = await readTopics(kafka.directBrokers, BROKEN);
    assert.deepEqual(records.map(({ topic }) => topic).toSorted(), BROKEN);
    assert.equal(service.logs(({ level }) => level === "fatal").length, 0);
    service.kill("SIGTERM");
    const { code, stderr } = await service.ended;
    assert.equal(code, 0, stderr);
  });
});

/** Events of a table that are to be sent: forty, and those with something special about them. */
function totalOf({ name }: ServiceTable): number {
  return name === "mail.outbox" ? 42 : name === "shop.outbox" ? 41 : 40;
}

function publishedBy(metrics: string): number[] {
  return SERVICES.map(({ name }) =>
    sample(metrics, `outbox_relay_events_published_total{source="${name}",destination="kafka"}`),
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function byName(one: { name: string }, other: { name: string }): number {
  return one.name < other.name ? -1 : 1;
}

function quantile(values: readonly number[], share: number): number {
  const ordered = values.toSorted((one, other) => one - other);
  return ordered[Math.ceil(share * ordered.length) - 1] ?? Number.NaN;
}
