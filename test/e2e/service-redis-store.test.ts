import assert from "node:assert/strict";
import { test } from "node:test";
import { overviewSchema } from "../../src/http/schemas/overview.ts";
import { redisOutbox } from "../../src/redis-outbox.ts";
import { freePort } from "../servers/free-port.ts";
import { startRedis } from "../servers/redis.ts";
import { until } from "../servers/until.ts";
import { runCommand, startService } from "./service-process.ts";

const EVENT = { type: "order.placed", key: "k", payload: '{"a": 1}' };

test("D7 A18: the service carries events out of Redis by its address alone, and lives through its restart", async () => {
  await using redis = await startRedis();
  const outbox = redisOutbox({ url: redis.url, name: "shop" });
  await outbox.append([
    { id: "1", ...EVENT, headers: { tenant: "t" } },
    { id: "2", ...EVENT },
  ]);
  const env = { OUTBOX_STORE: `${redis.url}?name=shop`, OUTBOX_DESTINATION: "stdout:" };
  const once = await runCommand(["run", "--once"], env);
  assert.equal(once.code, 0, once.stderr);
  assert.deepEqual(
    once.stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { id: string }).id),
    ["1", "2"],
  );
  await using running = startService(["run"], { ...env, PORT: String(await freePort()), LEASE_TIMEOUT: "3s" });
  await running.becomes("healthy");
  assert.equal((await running.get("/readyz")).status, 200);
  await redis.kill();
  await running.becomes("unhealthy");
  await redis.restart();
  await running.becomes("healthy");
  await outbox.append({ id: "3", ...EVENT });
  await until("the third is delivered", () => running.stdout().includes('"id":"3"'));
  assert.equal((await running.get("/api/v1/pipelines")).status >= 400, true);
  const overview = await until("the overview counts it", async () => {
    const { body, status } = await running.get("/api/v1/overview");
    assert.equal(status, 200, body);
    const told = overviewSchema.parse(JSON.parse(body));
    return told.publishedTotal === "1" && told.pending === 0 ? told : null;
  });
  assert.deepEqual([overview.instances, overview.parkedKeys, overview.destinations.length], [[], 0, 1]);
  const own = { OUTBOX_STORE: `${redis.url}?name=service`, OUTBOX_DESTINATION: "stdout:" };
  const fine = await runCommand(["doctor"], own);
  assert.deepEqual([fine.code, fine.stdout], [0, "No problems found: the outbox in Redis and the destinations.\n"]);
  const lost = await runCommand(["doctor"], { ...own, OUTBOX_STORE: "redis://127.0.0.1:1" });
  assert.deepEqual([lost.code, /✗ store: Redis at 127\.0\.0\.1:1: connection refused/.test(lost.stdout)], [3, true]);
  for (const [path, empty] of [
    ["/api/v1/logs", { logs: [] }],
    ["/api/v1/doctor", { findings: [] }],
  ] as const) {
    assert.deepEqual((await running.get(path)).json(), empty, path);
  }
  assert.equal((await running.get("/api/v1/series")).status, 200);
  running.kill("SIGTERM");
  assert.equal((await running.ended).code, 0);
  await outbox.close();
});

test("D7 A14: commands for a database say where the state of an outbox in Redis is instead", async () => {
  const env = { OUTBOX_STORE: "redis://127.0.0.1:1", OUTBOX_DESTINATION: "stdout:" };
  const asked = [["status"], ["dlq", "list"], ["events", "list"]].map((args) => runCommand(args, env));
  for (const { code, stderr } of await Promise.all(asked)) {
    assert.equal(code, 2);
    assert.match(stderr, /With OUTBOX_STORE, \/health and \/metrics of the relay show what waits/);
  }
  const grants = await runCommand(["grants", "relay"], env);
  assert.deepEqual([grants.code, /OUTBOX_STORE needs none/.test(grants.stderr)], [2, true], grants.stderr);
});

test("D7 A14: a store in Redis and one in a database exclude each other, and an address that is none is told", async () => {
  const wrong = await runCommand(["config", "validate"], {
    OUTBOX_STORE: "mysql://u:hunter2@h",
    OUTBOX_DESTINATION: "stdout:",
  });
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr + wrong.stdout, /OUTBOX_STORE is not a Redis address/);
  const both = { OUTBOX_STORE: "redis://h", DATABASE_URL: "postgres://h/d", OUTBOX_DESTINATION: "stdout:" };
  const told = await runCommand(["config", "validate"], both);
  assert.match(told.stderr + told.stdout, /OUTBOX_STORE and DATABASE_URL are both set/);
  assert.doesNotMatch(wrong.stderr + wrong.stdout, /hunter2/);
});
