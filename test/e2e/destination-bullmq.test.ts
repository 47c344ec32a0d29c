import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Queue } from "bullmq";
import { freePort } from "../servers/free-port.ts";
import { type RedisServer, startRedis } from "../servers/redis.ts";
import { startTcpProxy } from "../servers/tcp-proxy.ts";
import { ORDERS } from "./outbox-tables.ts";
import { runCommand } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "bullmq", [ORDERS]);
let server: RedisServer;

before(async () => {
  server = await startRedis();
});

after(() => server[Symbol.asyncDispose]());

async function insert({ sql }: Stage, type: string): Promise<string> {
  const text = `insert into orders.outbox (aggregate_id, event_type, payload, headers)
    values ('key-1', $1, '{"big": 12345678901234567890}', '{"tenant": "t-1"}') returning id`;
  const [row] = await sql<{ id: string }>(text, [type]);
  return row!.id;
}

function once(it: Stage, destination: string, more: Readonly<Record<string, string>> = {}) {
  const env = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: destination, ...more };
  return runCommand(["run", "--once"], env);
}

test("G2 B6: by environment alone events become jobs with id, key, bytes and headers; an illegal queue is a dead letter", async () => {
  await using it = await stage();
  const id = await insert(it, "order.placed");
  const fine = await once(it, `bullmq+redis://127.0.0.1:${server.port}/0?queue=orders`);
  assert.equal(fine.code, 0, fine.stderr);
  const queue = new Queue("orders", { connection: { host: "127.0.0.1", port: server.port } });
  const [job, ...others] = await queue.getJobs(["waiting"]);
  await queue.close();
  assert.deepEqual([job?.id, job?.name, others], [id, "order.placed", []]);
  const { encoding, headers, key, payload } = job!.data;
  assert.deepEqual([key, payload, encoding], ["key-1", '{"big": 12345678901234567890}', "utf8"]);
  assert.deepEqual([headers["event-id"], headers.tenant], [id, "t-1"]);
  await insert(it, "order:illegal");
  const dead = await once(it, `bullmq+redis://127.0.0.1:${server.port}/0`);
  assert.equal(dead.code, 5, dead.stderr);
  assert.match(dead.stderr + dead.stdout, /BullMQ forbids/);
});

test("G2: nobody there, or somebody who says nothing, is exit 1", async () => {
  await using it = await stage();
  await insert(it, "order.placed");
  const nobody = await once(it, `bullmq+redis://127.0.0.1:${await freePort()}/0`);
  assert.equal(nobody.code, 1, nobody.stderr);
  await using proxy = await startTcpProxy(server.port);
  proxy.blackhole(true);
  const silent = await once(it, `bullmq+redis://127.0.0.1:${proxy.port}/0`, { PUBLISH_TIMEOUT: "500ms" });
  assert.equal(silent.code, 1, silent.stderr);
});
