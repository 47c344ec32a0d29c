import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { type HttpReceiver, startHttpReceiver } from "../servers/http-receiver.ts";
import { startTcpProxy } from "../servers/tcp-proxy.ts";
import { ORDERS } from "./outbox-tables.ts";
import { runCommand } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "http", [ORDERS]);
let receiver: HttpReceiver;

before(async () => {
  receiver = await startHttpReceiver();
});

after(() => receiver[Symbol.asyncDispose]());

interface Row {
  readonly id: string;
  readonly correlation_id: string;
}

async function insert({ sql }: Stage, key: string, headers: Readonly<Record<string, string>> = {}): Promise<Row> {
  const text = `insert into orders.outbox (aggregate_id, event_type, payload, headers)
    values ($1, 'order.placed', '{"a": 1}', $2) returning id, correlation_id`;
  const [row] = await sql<Row & Record<string, unknown>>(text, [key, JSON.stringify(headers)]);
  return row!;
}

async function once(it: Stage, destination: string, env: Readonly<Record<string, string>> = {}) {
  return await runCommand(["run", "--once"], {
    DATABASE_URL: it.relayUrl,
    OUTBOX_SCHEMAS: "orders",
    OUTBOX_DESTINATION: destination,
    ...env,
  });
}

async function failureOf({ sql }: Stage): Promise<string> {
  const rows = await sql<{ reason: string }>("select to_jsonb(h)::text as reason from outbox_relay.holds h");
  return rows.map(({ reason }) => reason).join("\n");
}

const arrivedAt = (path: string) => receiver.arrivals().filter(({ url }) => url === path);

describe("outbox-relay run to an HTTP receiver", { concurrency: 2 }, () => {
  test("G2 B6 D8: by OUTBOX_DESTINATION alone an event is posted with its bytes, key, headers and Idempotency-Key", async () => {
    await using it = await stage();
    const row = await insert(it, "key-1", { tenant: "t-7", note: "grün\n" });
    const { code, stderr } = await once(it, `${receiver.origin}/plain`);
    assert.equal(code, 0, stderr);
    const [arrival, ...more] = arrivedAt("/plain");
    assert.deepEqual([arrival?.method, arrival?.body.toString(), more], ["POST", '{"a": 1}', []]);
    const { headers } = arrival!;
    assert.deepEqual([headers["idempotency-key"], headers["event-id"]], [row.id, row.id]);
    assert.deepEqual([headers["partition-key"], headers["event-type"]], ["key-1", "order.placed"]);
    assert.deepEqual([headers.tenant, headers["content-type"]], ["t-7", "application/json"]);
    assert.equal(headers["correlation-id"], row.correlation_id);
    assert.deepEqual([headers.note, headers["percent-encoded-headers"]], ["gr%C3%BCn%0A", "note"]);
  });

  test("A20 D8: requests are signed and carry the configured headers, and no secret reaches the log", async () => {
    await using it = await stage();
    const key = Buffer.alloc(32, 7);
    const secret = `whsec_${key.toString("base64")}`;
    const row = await insert(it, "key-1");
    const env = { HTTP_SIGNING_SECRET: secret, HTTP_HEADERS: "authorization=Bearer token-9", LOG_LEVEL: "trace" };
    const { code, stderr, stdout } = await once(it, `${receiver.origin}/signed`, { ...env, HTTP_METHOD: "PUT" });
    assert.equal(code, 0, stderr);
    const { body, headers, method } = arrivedAt("/signed")[0]!;
    const signed = `${row.id}.${headers["webhook-timestamp"]}.${body}`;
    const expected = createHmac("sha256", key).update(signed).digest("base64");
    assert.deepEqual([headers["webhook-id"], headers["webhook-signature"]], [row.id, `v1,${expected}`]);
    assert.deepEqual([method, headers.authorization], ["PUT", "Bearer token-9"]);
    for (const text of [stdout, stderr]) assert.doesNotMatch(text, /token-9|whsec_/);
  });

  test("G2: the address takes its path from the event; one that lacks the value is a dead letter with the reason", async () => {
    await using it = await stage();
    await insert(it, "a/b", { tenant: "t 1" });
    await insert(it, "key-2");
    const { code, stderr } = await once(it, `${receiver.origin}/to/{header:tenant}/{key}?type={type}`);
    assert.equal(code, 5, stderr);
    assert.equal(arrivedAt("/to/t%201/a%2Fb?type=order.placed").length, 1);
    assert.match(await failureOf(it), /the address needs \{header:tenant\}, but the event has no such value/);
  });

  test("A20: an event cannot name a private host, unless it is allowed", async () => {
    await using it = await stage();
    await insert(it, "key-1", { host: "2130706433" });
    const destination = `http://{header:host}:${receiver.port}/guarded`;
    const { code, stderr } = await once(it, destination);
    assert.equal(code, 5, stderr);
    assert.match(await failureOf(it), /names the host 127\.0\.0\.1, which is private or reserved/);
    await using other = await stage();
    await insert(other, "key-1", { host: "localhost" });
    const allowed = await once(other, destination, { HTTP_ALLOW_PRIVATE: "true", HTTP_ALLOWED_HOSTS: "localhost" });
    assert.equal(allowed.code, 0, allowed.stderr);
    assert.equal(arrivedAt("/guarded").length, 1);
  });

  test("G2 F2: a refused event is a dead letter with exit 5, and keys beside it are delivered", async () => {
    await using it = await stage();
    await insert(it, "bad", { "x-manner": "status:422" });
    await insert(it, "bad");
    await insert(it, "good");
    const { code, stderr } = await once(it, `${receiver.origin}/refusing`);
    assert.equal(code, 5, stderr);
    assert.deepEqual(
      arrivedAt("/refusing").map(({ headers }) => headers["partition-key"]),
      ["good"],
    );
    assert.match(await failureOf(it), /answered 422 Unprocessable Entity; it said: refused"/);
    const { stdout } = await runCommand(["dlq", "list"], { DATABASE_URL: it.relayUrl });
    assert.match(
      stdout,
      /answered 422 Unprocessable Entity; it said: refused$/m,
      "the receiver's words are not cut off",
    );
  });

  for (const [what, manner, said] of [
    [
      "a redirect",
      "redirect:https://elsewhere.example/x?token=secret",
      /answered 302 Found to https:\/\/elsewhere\.example;/,
    ],
    ["a wrong token", "status:401", /answered 401 Unauthorized: check the address, and the token/],
    [
      "a receiver that is too busy",
      "after:429:3600",
      /answered 429 Too Many Requests: the receiver limits the request rate/,
    ],
  ] as const) {
    test(`G2: ${what}: the event waits, no attempt is spent, exit 1`, async () => {
      await using it = await stage();
      await insert(it, "key-1", { "x-manner": manner });
      const { code, stderr, stdout } = await once(it, `${receiver.origin}/address`);
      assert.equal(code, 1, stderr);
      assert.match(stdout + stderr, said);
      const spent = await it.sql("select 1 from outbox_relay.holds where attempts > 0");
      assert.deepEqual(spent, []);
    });
  }

  test("H1: one event that is answered 403, 404, 429 or 503 keeps no other waiting", async () => {
    for (const manner of ["status:403", "status:404", "after:429:1", "status:503"]) {
      await using it = await stage();
      await insert(it, "bad", { "x-manner": manner });
      for (let i = 0; i < 30; i += 1) await insert(it, `key-${i}`);
      const path = `/one-${manner.replaceAll(":", "-")}`;
      const { code, stderr, stdout } = await once(it, `${receiver.origin}${path}`);
      assert.equal(new Set(arrivedAt(path).map(({ headers }) => headers["event-id"])).size, 30, stdout + stderr);
      // When it is the only one left, nobody tells it from an outage.
      assert.ok(code === 5 || code === 1, `${manner}: exit ${code}: ${stderr}`);
    }
  });

  test("G2: a host that nobody listens on, or that is unknown, is exit 1 with the reason", async () => {
    await using it = await stage();
    await insert(it, "key-1");
    const refused = await once(it, `http://127.0.0.1:${await freePort()}/`);
    assert.deepEqual([refused.code, /nothing listens there/.test(refused.stdout + refused.stderr)], [1, true]);
    const unknown = await once(it, "http://receiver.invalid/");
    assert.deepEqual([unknown.code, /the host name is unknown/.test(unknown.stdout + unknown.stderr)], [1, true]);
  });

  test("G2 A4: a receiver that accepts and hangs is exit 1; what it took may be sent again", async () => {
    await using it = await stage();
    await using proxy = await startTcpProxy(receiver.port);
    await insert(it, "key-1");
    proxy.blackhole(true);
    const { code, stderr, stdout } = await once(it, `http://127.0.0.1:${proxy.port}/hanging`, {
      PUBLISH_TIMEOUT: "1s",
    });
    assert.equal(code, 1, stderr);
    assert.match(stdout + stderr, /gave no answer/);
    const again = await once(it, `${receiver.origin}/hanging`);
    assert.equal(again.code, 0, again.stderr);
    assert.ok(arrivedAt("/hanging").length >= 1);
  });
});
