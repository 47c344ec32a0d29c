import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { redisOutbox } from "../../src/redis-outbox.ts";
import { createStream, type NatsServer, readStream, startNats } from "../servers/nats.ts";
import { openOutboxTableSql } from "../servers/openoutbox-table.ts";
import { startRedis } from "../servers/redis.ts";
import { startTcpProxy } from "../servers/tcp-proxy.ts";
import { BILLING, ORDERS } from "./outbox-tables.ts";
import { type Ended, runCommand } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "nats", [ORDERS, BILLING]);

let nats: NatsServer;
before(async () => {
  nats = await startNats();
  await createStream(nats.port, "ORDERS", { subjects: ["order.>"] });
  await createStream(nats.port, "BILLING", { subjects: ["invoice.>"] });
});
after(() => nats[Symbol.asyncDispose]());

type Row = { readonly id: string; readonly correlation_id: string } & Record<string, unknown>;

async function insert({ sql }: Stage, type: string, headers: object | null = null): Promise<Row> {
  const [row] = await sql<Row>(
    `insert into orders.outbox (aggregate_id, event_type, payload, headers)
     values ($1, $1, '{"a":  1}', $2) returning id, correlation_id`,
    [type, headers === null ? null : JSON.stringify(headers)],
  );
  return row!;
}

function runOnce({ relayUrl }: Stage, destination: string, env: Record<string, string> = {}): Promise<Ended> {
  const common = { DATABASE_URL: relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: destination };
  return runCommand(["run", "--once"], { ...common, ...env });
}

async function stored(stream: string, { id }: Row) {
  return (await readStream(nats.port, stream)).filter(({ headers }) => headers["event-id"] === id);
}

describe("outbox-relay run to NATS", { concurrency: 2 }, () => {
  test("G2 B6 D3 by environment alone events reach their stream once, with key, bytes, headers and id", async () => {
    await using it = await stage();
    const row = await insert(it, "order.placed", { tenant: "t-1" });
    const { code, stderr } = await runOnce(it, `nats://127.0.0.1:${nats.port}?stream=ORDERS`);
    assert.equal(code, 0, stderr);
    const [message, ...more] = await stored("ORDERS", row);
    assert.deepEqual([message?.subject, message?.payload.toString(), more], ["order.placed", '{"a":  1}', []]);
    const { headers } = message!;
    assert.deepEqual(
      [headers["Nats-Msg-Id"], headers["correlation-id"], headers["partition-key"], headers.tenant],
      [row.id, row.correlation_id, "order.placed", "t-1"],
    );
  });

  test("G2 C5 D6 illegal subjects and headers are dead, subjects without a stream wait, the rest arrives: exit 5", async () => {
    await using it = await stage();
    const good = await insert(it, "order.paid");
    await insert(it, "order placed");
    await insert(it, "order.*");
    await insert(it, "order.noted", { note: "two\nlines" });
    await insert(it, "nobody.listens");
    const { code, stderr, stdout } = await runOnce(it, nats.url);
    assert.equal(code, 5, stderr);
    assert.equal((await stored("ORDERS", good)).length, 1);
    const dead = await it.sql<{ failure_reason: string }>(
      "select failure_reason from outbox_relay.failed_events order by 1",
    );
    assert.deepEqual(
      dead.map(({ failure_reason }) => /contains "(?: |\*)"|line break/.exec(failure_reason)?.[0]),
      ["line break", 'contains " "', 'contains "*"'],
    );
    assert.match(stderr + stdout, /no stream takes it/);
  });

  test("G2 C5 a stream that is not the wanted one gets nothing: exit 5, with both names", async () => {
    await using it = await stage();
    const row = await insert(it, "invoice.issued");
    const { code, stderr, stdout } = await runOnce(it, `${nats.url}?stream=ORDERS`);
    assert.equal(code, 5, stderr);
    assert.match(stderr + stdout, /BILLING.*ORDERS/);
    assert.equal((await stored("BILLING", row)).length, 0);
  });

  test("G2 A4 a server that refuses, and one that accepts and hangs, is exit 1 with the address", async () => {
    await using it = await stage();
    await insert(it, "order.placed");
    const refused = await runOnce(it, "nats://127.0.0.1:1?stream=ORDERS");
    assert.equal(refused.code, 1, refused.stderr);
    assert.match(refused.stderr + refused.stdout, /127\.0\.0\.1:1/);
    await using proxy = await startTcpProxy(nats.port);
    proxy.blackhole(true);
    const hung = await runOnce(it, `nats://127.0.0.1:${proxy.port}`, { PUBLISH_TIMEOUT: "500ms" });
    assert.equal(hung.code, 1, hung.stderr);
  });

  test("D6 the doctor names subjects that no stream takes", async () => {
    await using it = await stage();
    await insert(it, "nobody.listens");
    const env = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: nats.url };
    const { stdout, stderr } = await runCommand(["doctor"], env);
    assert.match(stdout + stderr, /nobody\.listens \(no stream takes it\)/);
  });

  test("D6 A17 the doctor looks for the subjects of every kind of source, and for those that the routes name", async () => {
    await using it = await stage();
    const logged = `(position bigint generated always as identity primary key, event_id uuid unique default gen_random_uuid(),
      event_type text, aggregate_id text, payload text)`;
    await it.sql(`${openOutboxTableSql("public.openoutbox_events")} create schema logs; create table logs.tail ${logged};
      create table logs.wal (id uuid primary key default gen_random_uuid(), aggregatetype text, aggregateid text, type text, payload text)`);
    const sources = {
      OUTBOX_SCHEMAS: "orders,public",
      OUTBOX_MANAGED: "shop.log",
      OUTBOX_EVENT_TABLES: "logs.tail",
      OUTBOX_WAL: "logs.wal,message:mails",
    };
    const routes = [
      { types: "mail.*", topic: "fixed.for.{schema}" },
      { types: ["exact.type", "order.placed"] },
      { types: "keyed.*", topic: "by.{key}" },
      {},
    ];
    const env = { DATABASE_URL: it.url, OUTBOX_DESTINATION: nats.url, OUTBOX_ROUTES: JSON.stringify(routes) };
    assert.equal((await runCommand(["migrate", "up"], { ...env, ...sources })).code, 0);
    const asked = async (more: Record<string, string>) => {
      const { stdout, stderr } = await runCommand(["doctor", "-o", "json"], { ...env, ...more });
      const found = JSON.parse(stdout) as { check: string; what: string }[];
      const topics = found.filter(({ check }) => check === "topics").map(({ what }) => what);
      assert.equal(topics.length, 1, stdout + stderr);
      return [...(topics[0] ?? "").matchAll(/(\S+) \(no stream takes it\)/g)].map(([, topic]) => topic).toSorted();
    };
    const named = ["exact.type", ...["logs", "message", "orders", "public", "shop"].map((it) => `fixed.for.${it}`)];
    assert.deepEqual(await asked(sources), named, "nothing waits anywhere");

    await it.sql(`insert into openoutbox_events (event_id, event_type, payload) values (gen_random_uuid(), 'of.open', '');
      select shop.log_publish('of.managed', 'k', '1');
      insert into logs.tail (event_type, payload) values ('of.tail', '1'), ('keyed.one', '1');
      insert into logs.wal (aggregatetype, type, payload) values ('bill', 'issued', '1')`);
    const waiting = ["of.managed", "of.open", "of.tail", "outbox.event.bill"];
    assert.deepEqual(await asked(sources), [...named, ...waiting].toSorted());

    await using redis = await startRedis();
    const outbox = redisOutbox({ url: redis.url, name: "shop" });
    await outbox.append({ id: "1", type: "of.redis", payload: "1" });
    await outbox.close();
    const store = { DATABASE_URL: "", OUTBOX_STORE: `${redis.url}?name=shop` };
    assert.deepEqual(await asked(store), ["exact.type", "fixed.for.redis", "of.redis"]);
  });
});
