import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Redis } from "ioredis";
import { freePort } from "../servers/free-port.ts";
import { type RedisServer, startRedis } from "../servers/redis.ts";
import { startTcpProxy } from "../servers/tcp-proxy.ts";
import { BILLING, ORDERS } from "./outbox-tables.ts";
import { readEvents } from "./redis-events.ts";
import { runCommand } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "redis", [ORDERS, BILLING]);
let server: RedisServer;
let redis: Redis;

before(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});

after(async () => {
  redis.disconnect();
  await server[Symbol.asyncDispose]();
});

async function insert({ sql }: Stage, table: string, type: string, payload: unknown = '{"a": 1}') {
  const text = `insert into ${table} (aggregate_id, event_type, payload, headers)
    values ('key-1', $1, $2, '{"tenant": "t-1"}') returning id, correlation_id`;
  const [row] = await sql<{ id: string; correlation_id: string }>(text, [type, payload]);
  return row!;
}

function once(it: Stage, destination: string) {
  const env = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders,billing", OUTBOX_DESTINATION: destination };
  return runCommand(["run", "--once"], env);
}

test("G2 B6: by environment alone events reach their streams with id, key, bytes and headers", async () => {
  await using it = await stage();
  const order = await insert(it, "orders.outbox", "order.placed", '{"big": 12345678901234567890}');
  const bytes = Buffer.from([0, 255, 1]);
  const invoice = await insert(it, "billing.outbox_events", "invoice.issued", bytes);
  const { code, stderr } = await once(it, `${server.url}?maxlen=1000&dedupe=1m&prefix=seen:`);
  assert.equal(code, 0, stderr);
  const [first, ...more] = await readEvents(redis, "order.placed");
  assert.deepEqual(
    [first?.id, first?.key, String(first?.payload)],
    [order.id, "key-1", '{"big": 12345678901234567890}'],
  );
  assert.deepEqual(more, []);
  const { "created-at": createdAt, ...headers } = first!.headers;
  assert.deepEqual(headers, { tenant: "t-1", "event-id": order.id, "correlation-id": order.correlation_id });
  assert.match(createdAt ?? "", /^\d{4}-\d\d-\d\dT.*Z$/);
  const [second] = await readEvents(redis, "invoice.issued");
  assert.deepEqual([second?.id, second?.payload.toString("hex")], [invoice.id, bytes.toString("hex")]);
  assert.equal((await redis.keys("seen:*")).length, 2);
});

test("G2: a key of another type leaves its events waiting (5), the others are delivered", async () => {
  await using it = await stage();
  await redis.set("order.taken", "x");
  await insert(it, "orders.outbox", "order.taken");
  const fine = await insert(it, "billing.outbox_events", "invoice.fine", Buffer.from("1"));
  const { code, stderr, stdout } = await once(it, server.url);
  assert.equal(code, 5, stderr);
  assert.match(stderr + stdout, /WRONGTYPE/);
  assert.deepEqual(
    (await readEvents(redis, "invoice.fine")).map(({ id }) => id),
    [fine.id],
  );
});

test("G2: nobody there, or somebody who takes connections and says nothing, is exit 1", async () => {
  await using it = await stage();
  await insert(it, "orders.outbox", "order.placed");
  const nobody = await once(it, `redis://127.0.0.1:${await freePort()}/0`);
  assert.equal(nobody.code, 1, nobody.stderr);
  await using proxy = await startTcpProxy(server.port);
  proxy.blackhole(true);
  const env = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", PUBLISH_TIMEOUT: "500ms" };
  const silent = await runCommand(["run", "--once"], {
    ...env,
    OUTBOX_DESTINATION: `redis://127.0.0.1:${proxy.port}/0`,
  });
  assert.equal(silent.code, 1, silent.stderr);
});

test("G2 A20: a mistake in the address is exit 2 with its name, and shows no password", async () => {
  await using it = await stage();
  const { code, stderr, stdout } = await once(it, "redis://u:canary@localhost/0?maxlenn=5");
  assert.equal(code, 2);
  assert.match(stderr + stdout, /did you mean maxlen/);
  assert.doesNotMatch(stderr + stdout, /canary/);
});
