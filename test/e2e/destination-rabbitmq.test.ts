import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { type RabbitServer, startRabbit } from "../servers/rabbitmq.ts";
import { overRabbit, takeAll } from "../servers/rabbitmq-reader.ts";
import { startTcpProxy } from "../servers/tcp-proxy.ts";
import { until } from "../servers/until.ts";
import { ORDERS } from "./outbox-tables.ts";
import { type Ended, runCommand, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "rabbit", [ORDERS]);

let rabbit: RabbitServer;
before(async () => {
  rabbit = await startRabbit(["max_message_size = 20000"]);
});
after(() => rabbit[Symbol.asyncDispose]());

type Row = { readonly id: string; readonly correlation_id: string } & Record<string, unknown>;

async function insert({ sql }: Stage, type: string, more: { headers?: object; payload?: string } = {}): Promise<Row> {
  const { headers = null, payload = '{"a":  1}' } = more;
  const [row] = await sql<Row>(
    `insert into orders.outbox (aggregate_id, event_type, payload, headers) values ($1, $1, $2, $3)
     returning id, correlation_id`,
    [type, payload, headers === null ? null : JSON.stringify(headers)],
  );
  return row!;
}

function runOnce({ relayUrl }: Stage, destination: string, env: Record<string, string> = {}): Promise<Ended> {
  const common = { DATABASE_URL: relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: destination };
  return runCommand(["run", "--once"], { ...common, ...env });
}

/** An exchange with one queue of the same name, which takes `order.*`. */
async function exchange(name: string): Promise<string> {
  await overRabbit(rabbit.url, async (channel) => {
    await channel.assertExchange(name, "topic", { durable: true });
    await channel.assertQueue(name, { durable: true });
    await channel.bindQueue(name, name, "order.*");
  });
  return `${rabbit.url}/?exchange=${name}`;
}

async function reasonsOf({ sql }: Stage): Promise<string[]> {
  const rows = await sql<{ failure_reason: string }>(
    "select failure_reason from outbox_relay.failed_events order by 1",
  );
  return rows.map(({ failure_reason }) => failure_reason);
}

describe("outbox-relay run to RabbitMQ", { concurrency: 2 }, () => {
  test("G2 B6 C3 by environment alone events reach their queue, persistent, with key, bytes, headers and id", async () => {
    await using it = await stage();
    const row = await insert(it, "order.placed", { headers: { tenant: "t-1", "content-type": "application/json" } });
    const { code, stderr } = await runOnce(it, await exchange("plain"));
    assert.equal(code, 0, stderr);
    const [message, ...more] = await takeAll(rabbit.url, "plain");
    assert.deepEqual(
      [message?.fields.routingKey, message?.content.toString(), more],
      ["order.placed", '{"a":  1}', []],
    );
    const { properties } = message!;
    assert.deepEqual(
      [
        properties.messageId,
        properties.type,
        properties.correlationId,
        properties.contentType,
        properties.deliveryMode,
      ],
      [row.id, "order.placed", row.correlation_id, "application/json", 2],
    );
    assert.ok(Math.abs(properties.timestamp - Date.now() / 1_000) < 600);
    const { headers } = properties;
    assert.deepEqual(
      [headers?.["event-id"], headers?.["partition-key"], headers?.tenant],
      [row.id, "order.placed", "t-1"],
    );
  });

  test("C3 C5 D6 what the protocol cannot carry is dead, what no queue takes waits, the rest arrives: exit 5", async () => {
    await using it = await stage();
    const good = await insert(it, "order.paid");
    await insert(it, `order.${"x".repeat(260)}`);
    await insert(it, "order.noted", { headers: { CC: "other.key" } });
    await insert(it, "nobody.listens");
    const { code, stderr, stdout } = await runOnce(it, await exchange("mixed"));
    assert.equal(code, 5, stderr);
    const arrived = await takeAll(rabbit.url, "mixed");
    assert.deepEqual(
      arrived.map(({ properties }) => properties.messageId),
      [good.id],
    );
    const [first, second, ...more] = await reasonsOf(it);
    assert.match(first ?? "", /header CC contains additional routing keys/);
    assert.match(second ?? "", /routing key has 266 bytes, 255 are allowed/);
    assert.deepEqual(more, []);
    assert.match(stderr + stdout, /no queue for the routing key \\?"nobody\.listens/);
  });

  test("C5 a message beyond the server's max_message_size is dead, and the others of its batch arrive", async () => {
    await using it = await stage();
    for (const type of ["order.a", "order.b", "order.c"]) await insert(it, type);
    await insert(it, "order.large", { payload: JSON.stringify({ long: "x".repeat(30_000) }) });
    for (const type of ["order.d", "order.e"]) await insert(it, type);
    const { code, stderr } = await runOnce(it, await exchange("large"));
    assert.equal(code, 5, stderr);
    const types = new Set((await takeAll(rabbit.url, "large")).map(({ properties }) => properties.type));
    assert.deepEqual([...types].sort(), ["order.a", "order.b", "order.c", "order.d", "order.e"]);
    assert.match((await reasonsOf(it)).join(), /RabbitMQ allows 20000 \(max_message_size\)/);
  });

  test("G2 an exchange, user or virtual host that is not there is exit 1, and the text says what to do", async () => {
    await using it = await stage();
    await insert(it, "order.placed");
    const login = (address: string) => `amqp://${address.replace("@", `@127.0.0.1:${rabbit.port}/`)}`;
    const cases = [
      [`${rabbit.url}/?exchange=absent`, /exchange \\?"absent\\?" does not exist .* declare=true/],
      [login("guest:wrong-secret@?exchange=x"), /user \\?"guest\\?" or the password is wrong/],
      [login("guest:guest@nowhere?exchange=x"), /virtual host \\?"nowhere\\?" does not exist/],
    ] as const;
    for (const [destination, expected] of cases) {
      const { code, stderr, stdout } = await runOnce(it, destination);
      assert.match(stderr + stdout, expected);
      assert.doesNotMatch(stderr + stdout, /wrong-secret/);
      assert.equal(code, 1, stderr);
    }
    // The doctor says the same of all three at once.
    const urls = Object.fromEntries(cases.map(([url], at) => [`at${at}`, { url }]));
    const routes = Object.keys(urls).map((destination) => ({ types: [`${destination}.*`], destination }));
    const env = { OUTBOX_DESTINATIONS: JSON.stringify(urls), OUTBOX_ROUTES: JSON.stringify(routes) };
    const doctor = await runCommand(["doctor"], { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", ...env });
    // One of the passwords is the name of the user too.
    for (const [, expected] of cases) assert.match(doctor.stdout.replaceAll("[redacted]", "guest"), expected);
    assert.deepEqual([doctor.code, /wrong-secret/.test(doctor.stdout)], [3, false], doctor.stderr);
    const none = await runOnce(it, `${rabbit.url}/`);
    assert.deepEqual([none.code, /names no exchange: add \?exchange=NAME/.test(none.stderr)], [2, true], none.stderr);
  });

  test("C3 with declare=true exchange and quorum queue are made, and the first event arrives", async () => {
    await using it = await stage();
    const row = await insert(it, "order.placed");
    const address = `${rabbit.url}/?exchange=made&declare=true&queue=made-queue`;
    const env = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: address };
    // What the first publish makes is not missing, and the doctor leaves it to the publish.
    assert.doesNotMatch((await runCommand(["doctor"], env)).stdout, /destination/);
    const { code, stderr } = await runOnce(it, address);
    assert.equal(code, 0, stderr);
    const [message] = await takeAll(rabbit.url, "made-queue");
    assert.equal(message?.properties.messageId, row.id);
  });

  test("G2 a server that refuses or hangs is exit 1; of several hosts the one that answers is used", async () => {
    await using it = await stage();
    const row = await insert(it, "order.placed");
    const address = await exchange("faults");
    await using proxy = await startTcpProxy(rabbit.port);
    const through = address.replace(`:${rabbit.port}/`, `:${proxy.port}/`);
    proxy.refuse(true);
    assert.equal((await runOnce(it, through)).code, 1);
    proxy.refuse(false);
    proxy.blackhole(true);
    const hung = await runOnce(it, through, { PUBLISH_TIMEOUT: "500ms" });
    assert.equal(hung.code, 1, hung.stderr);
    const dead = await freePort();
    const { code, stderr } = await runOnce(it, address.replace("@", `@127.0.0.1:${dead},`));
    assert.equal(code, 0, stderr);
    const [message] = await takeAll(rabbit.url, "faults");
    assert.equal(message?.properties.messageId, row.id);
  });

  test("A3 A4 connections that are cut again and again lose nothing and keep the order of a key", async () => {
    await using it = await stage();
    const address = await exchange("cuts");
    await using proxy = await startTcpProxy(rabbit.port);
    await it.sql(
      `insert into orders.outbox (aggregate_id, event_type, payload, created_at)
       select 'k' || n % 20, 'order.changed', jsonb_build_object('n', n), timestamptz '2026-01-01' + n * interval '1 ms'
       from generate_series(1, 1000) n`,
    );
    await using running = startService(["run"], {
      DATABASE_URL: it.relayUrl,
      OUTBOX_SCHEMAS: "orders",
      OUTBOX_DESTINATION: address.replace(`:${rabbit.port}/`, `:${proxy.port}/`),
      RATE_LIMIT: "500",
      PORT: String(await freePort()),
    });
    const left = async () =>
      Number((await it.sql<{ n: string }>("select count(*) n from orders.outbox where not published"))[0]!.n);
    for (const below of [900, 600, 300]) {
      await until(`${below} are left`, async () => (await left()) < below);
      proxy.cut();
    }
    await until("all are delivered", async () => (await left()) === 0);
    running.kill("SIGTERM");
    assert.equal((await running.ended).code, 0);
    const firsts = new Map<string, { readonly key: string; readonly n: number }>();
    for (const { content, properties } of await takeAll(rabbit.url, "cuts")) {
      const seen = { key: properties.headers?.["partition-key"], n: JSON.parse(content.toString()).n };
      if (!firsts.has(properties.messageId)) firsts.set(properties.messageId, seen);
    }
    assert.equal(firsts.size, 1_000);
    const lastOf = new Map<string, number>();
    for (const { key, n } of firsts.values()) {
      assert.ok(n > (lastOf.get(key) ?? 0), `${n} of ${key} came late`);
      lastOf.set(key, n);
    }
  });
});
