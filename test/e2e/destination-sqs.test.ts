import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type ElasticMq, SQS_ENVIRONMENT, startElasticMq } from "../servers/elasticmq.ts";
import { startTcpProxy } from "../servers/tcp-proxy.ts";
import { ORDERS } from "./outbox-tables.ts";
import { type Ended, runCommand } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "sqs", [ORDERS]);

let elasticMq: ElasticMq;
before(async () => {
  elasticMq = await startElasticMq();
});
after(() => elasticMq[Symbol.asyncDispose]());

type Row = { readonly id: string; readonly correlation_id: string } & Record<string, unknown>;

async function insert({ sql }: Stage, key: string | null, headers: object | null = null): Promise<Row> {
  const [row] = await sql<Row>(
    `insert into orders.outbox (aggregate_id, event_type, payload, headers)
     values ($1, 'order.placed', '{"a":  1}', $2) returning id, correlation_id`,
    [key, headers === null ? null : JSON.stringify(headers)],
  );
  return row!;
}

function address(queue: string, port: number): string {
  return `sqs://eu-central-1/${queue}?endpoint=http://127.0.0.1:${port}`;
}

function runOnce({ relayUrl }: Stage, destination: string, env: Record<string, string> = {}): Promise<Ended> {
  const common = { DATABASE_URL: relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: destination };
  return runCommand(["run", "--once"], { ...common, ...SQS_ENVIRONMENT, ...env });
}

describe("outbox-relay run to SQS", { concurrency: 2 }, () => {
  for (const queue of ["orders.fifo", "orders"]) {
    test(`G2 B6 D8 by environment alone events reach the queue ${queue} once, with key, bytes, headers and id`, async () => {
      await using it = await stage();
      const queueUrl = await elasticMq.createQueue(queue);
      const row = await insert(it, "key-1", { tenant: "t-1" });
      const { code, stderr } = await runOnce(it, address(queue, elasticMq.port));
      assert.equal(code, 0, stderr);
      const [message, ...more] = await elasticMq.drain(queueUrl);
      assert.deepEqual([message?.Body, more], ['{"a":  1}', []]);
      const texts = Object.entries(message?.MessageAttributes ?? {}).map(([name, it]) => [name, it.StringValue]);
      const { "created-at": createdAt, ...attributes } = Object.fromEntries(texts);
      assert.match(createdAt, /Z$/);
      assert.deepEqual(attributes, {
        "event-id": row.id,
        "correlation-id": row.correlation_id,
        "partition-key": "key-1",
        tenant: "t-1",
        topic: "order.placed",
      });
      if (queue.endsWith(".fifo")) {
        const { MessageDeduplicationId, MessageGroupId } = message?.Attributes ?? {};
        assert.deepEqual([MessageGroupId, MessageDeduplicationId], ["key-1", row.id]);
      }
    });
  }

  test("B6 C5 headers that SQS has no place for arrive together in one attribute", async () => {
    await using it = await stage();
    const queueUrl = await elasticMq.createQueue("many.fifo");
    const headers = { ...Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`h ${n}`, `v${n}`])), empty: "" };
    await insert(it, "käse", headers);
    assert.equal((await runOnce(it, address("many.fifo", elasticMq.port))).code, 0);
    const [message] = await elasticMq.drain(queueUrl);
    const packed = JSON.parse(message?.MessageAttributes?.headers?.StringValue ?? "{}");
    for (const [name, value] of Object.entries(headers)) assert.equal(packed[name], value);
    assert.equal(packed["partition-key"], "käse");
  });

  test("G2 A4 a queue that does not exist, a server that refuses and one that hangs: exit 1, told by name", async () => {
    await using it = await stage();
    await insert(it, "key-1");
    const missing = await runOnce(it, address("nowhere", elasticMq.port));
    assert.equal(missing.code, 1, missing.stderr);
    assert.match(missing.stderr + missing.stdout, /\\?"nowhere\\?" in eu-central-1 does not exist/);
    const refused = await runOnce(it, address("orders", 1));
    assert.equal(refused.code, 1, refused.stderr);
    await using proxy = await startTcpProxy(elasticMq.port);
    proxy.blackhole(true);
    const hung = await runOnce(it, address("orders", proxy.port), { PUBLISH_TIMEOUT: "500ms" });
    assert.equal(hung.code, 1, hung.stderr);
  });
});
