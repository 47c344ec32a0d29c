import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertWithin } from "../../test/servers/pace.ts";
import { type RedisServer, startRedis } from "../../test/servers/redis.ts";
import { until } from "../../test/servers/until.ts";
import { WorkerStage } from "../../test/servers/worker-stage.ts";
import { scheduledRetry } from "../core/retry-policy.ts";
import { FinalFailure } from "./failures.ts";
import type { ExecuteContext, RecordedOutcome } from "./worker-options.ts";

let server: RedisServer;

before(async () => {
  server = await startRedis(["--maxmemory-policy", "noeviction"]);
});

after(() => server[Symbol.asyncDispose]());

const lockKey = ({ context }: WorkerStage, requestId: string) => `${context}:v1:{core}:execute-lock:${requestId}`;

/** Aborted in time: rejects as a client of HTTP does. */
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));

test("E6 a lock that another has: the job waits without spending an attempt, and is executed when it is free", async () => {
  await using stage = new WorkerStage(server.url);
  await stage.redis.set(lockKey(stage, "r-1"), "123:somebody-else", "PX", 60_000);
  let executed = 0;
  await stage.work({ execute: () => (executed += 1) });
  const id = await stage.ask("r-1");
  const line = await stage.line("it waits", ({ outcome }) => outcome === "delayed");
  assert.match(line.reason!, /another worker holds its execute lock/);
  assert.equal(line.correlationId, "corr-r-1", "its ids are logged all the same");
  assert.equal(executed, 0);
  assert.equal((await stage.queue.getJob(id))!.attemptsMade, 0);
  await stage.redis.del(lockKey(stage, "r-1"));
  await stage.outcome("r-1");
  assert.equal(executed, 1);
});

test("E6 the lock lives for lockMs, is renewed during the execution, and its fence rises", async () => {
  await using stage = new WorkerStage(server.url);
  const fences: number[] = [];
  let free = () => {};
  const held = new Promise<void>((resolve) => {
    free = resolve;
  });
  await stage.work({
    lockMs: 2_400,
    execute: async (_, { fence, signal }) => {
      fences.push(fence);
      await held;
      return signal.aborted;
    },
  });
  await stage.ask("r-1");
  const token = await until("it is locked", () => stage.redis.get(lockKey(stage, "r-1")));
  assert.ok((await stage.redis.pttl(lockKey(stage, "r-1"))) <= 2_400);
  const from = performance.now();
  await until("it outlived two lives", async () => {
    assert.equal(await stage.redis.get(lockKey(stage, "r-1")), token);
    return performance.now() - from > 5_000;
  });
  free();
  assert.deepEqual((await stage.outcome("r-1")).data, { id: "r-1", result: false });
  await stage.ask("r-2");
  await stage.outcome("r-2");
  assert.ok(fences[1]! > fences[0]!, String(fences));
});

test("E6 a lock that is gone during execution: the signal aborts, nothing is recorded, and the job is executed again by the same key", async () => {
  await using stage = new WorkerStage(server.url);
  const seen: ExecuteContext[] = [];
  await stage.work({
    lockMs: 300,
    retry: scheduledRetry([1]),
    execute: async (_, context) => {
      seen.push(context);
      if (seen.length > 1) return "paid";
      await stage.redis.del(lockKey(stage, "r-1"));
      return await untilAborted(context.signal);
    },
  });
  await stage.ask("r-1");
  const outcome = await stage.outcome("r-1");
  assert.equal(outcome.type, "PayoutCompleted.v1");
  assert.deepEqual(
    seen.map(({ attempt, idempotencyKey }) => [attempt, idempotencyKey]),
    [
      [1, "core:r-1:0"],
      [1, "core:r-1:0"],
    ],
  );
  const line = await stage.line("the loss is logged", ({ outcome }) => outcome === "delayed");
  assert.match(line.reason!, /execute lock is gone.*nothing was recorded/);
  assert.equal(stage.outcomes("r-1").length, 1);
});

test("E6 a lock that expired during execution and is another's now: nothing is recorded by the first, even if it succeeded", async () => {
  await using stage = new WorkerStage(server.url);
  const key = lockKey(stage, "r-1");
  let executed = 0;
  await stage.work({
    lockMs: 300,
    execute: async () => {
      executed += 1;
      if (executed === 1) await stage.redis.set(key, "999:another", "PX", 60_000);
      return executed;
    },
  });
  await stage.ask("r-1");
  const line = await stage.line("it is logged", ({ reason }) => /that one records the outcome/.test(reason ?? ""));
  assert.equal(line.outcome, "delayed");
  assert.equal(stage.outcomes("r-1").length, 0);
  assert.equal(await stage.redis.get(key), "999:another", "the other's lock is left alone");
  await stage.redis.del(key);
  assert.deepEqual((await stage.outcome("r-1")).data, { id: "r-1", result: 2 });
});

test("E6 a Redis that lost its data during execution: a success is recorded under a retaken lock", async () => {
  await using stage = new WorkerStage(server.url);
  let executed = 0;
  await stage.work({
    lockMs: 300,
    execute: async () => {
      executed += 1;
      await stage.redis.flushall();
      return "paid";
    },
  });
  await stage.ask("r-1");
  assert.deepEqual((await stage.outcome("r-1")).data, { id: "r-1", result: "paid" });
  await stage.ask("r-2");
  await stage.outcome("r-2");
  assert.equal(executed, 2, "and the worker continues");
});

test("E6 the log does not answer: nothing is executed while it cannot be read, and what happened is recorded once it is back", async () => {
  await using stage = new WorkerStage(server.url);
  let executed = 0;
  const id = await stage.ask("r-1");
  stage.log.fail("nobody there");
  await stage.work({
    lockMs: 2_000,
    execute: () => {
      executed += 1;
      stage.log.fail("gone again");
      return executed;
    },
  });
  await stage.line("it waits for the log", ({ outcome, reason }) => outcome === "delayed" && /nobody/.test(reason!));
  assert.equal(executed, 0);
  stage.log.fail(null);
  await stage.line("it cannot be recorded", ({ outcome }) => outcome === "waiting");
  const from = performance.now();
  await until("the lock is kept for longer than its life", async () => {
    assert.equal(await stage.redis.exists(lockKey(stage, "r-1")), 1);
    return performance.now() - from > 4_200;
  });
  stage.log.fail(null);
  await stage.outcome("r-1");
  assert.equal(await stage.finished(id), "completed");
  assert.deepEqual([executed, stage.outcomes("r-1").length], [1, 1]);
});

test("E6 a projection that fails is called again until it succeeds, and nothing is executed again", async () => {
  await using stage = new WorkerStage(server.url);
  const projected: RecordedOutcome[] = [];
  let executed = 0;
  await stage.work({
    execute: () => (executed += 1),
    project: (outcome) => {
      projected.push(outcome);
      if (projected.length === 1) throw new Error("snapshot is locked");
    },
  });
  const id = await stage.ask("r-1");
  assert.equal(await stage.finished(id), "completed");
  assert.deepEqual([executed, stage.outcomes("r-1").length], [1, 1]);
  assert.deepEqual(
    projected.map(({ isRepeated }) => isRepeated),
    [false, true],
  );
});

test("E6 Redis is killed and restarted during execution: one execution, one outcome, and the worker continues", async () => {
  await using stage = new WorkerStage(server.url);
  let executed = 0;
  await stage.work({
    execute: async ({ requestId }) => {
      executed += 1;
      if (requestId === "r-1") await server.kill().then(() => server.restart());
      return "paid";
    },
  });
  const id = await stage.ask("r-1");
  await stage.outcome("r-1");
  await stage.finished(id);
  const next = await stage.ask("r-2");
  await stage.finished(next);
  assert.deepEqual([executed, stage.outcomes("r-1").length, stage.outcomes("r-2").length], [2, 1, 1]);
});

test("E6 a close lets the work end and frees its lock; behind the grace the signal aborts and another worker does it", async () => {
  await using stage = new WorkerStage(server.url);
  const seen: string[] = [];
  const first = await stage.work({
    execute: async ({ requestId }, { signal }) => {
      seen.push(requestId);
      if (requestId === "endless") return await untilAborted(signal);
      return "paid";
    },
  });
  const ids = [await stage.ask("quick"), await stage.ask("endless")];
  await until("both have begun", () => seen.length === 2);
  await first.close(100);
  await stage.finished(ids[0]!);
  assert.equal(stage.outcomes("endless").length, 0);
  assert.equal(await stage.redis.exists(lockKey(stage, "endless")), 0, "its lock is free");
  await assert.rejects(first.run(), /called after close/);
  await stage.work({ execute: () => "done by the second" });
  assert.deepEqual((await stage.outcome("endless")).data, { id: "endless", result: "done by the second" });
});

test("E6 a result that is no JSON or too large does not keep the outcome out of the log", async () => {
  await using stage = new WorkerStage(server.url);
  await stage.work({
    execute: ({ requestId }) => {
      if (requestId === "big") return "x".repeat(600_000);
      if (requestId === "odd") return 12n;
      throw new FinalFailure("no");
    },
  });
  await Promise.all(["big", "odd"].map((id) => stage.ask(id)));
  const [big, odd] = await Promise.all(["big", "odd"].map((id) => stage.outcome(id)));
  assert.deepEqual(big!.data, { id: "big", result: null, resultOmitted: "it has 600002 bytes, more than 524288" });
  assert.deepEqual(odd!.data, { id: "odd", result: null, resultOmitted: "it cannot be written as JSON" });
});

test("E6 Redis is away: a start waits for it, and an end does not", async () => {
  const stage = new WorkerStage(server.url);
  await server.kill();
  await stage.work();
  await stage.line("no answer", ({ outcome }) => outcome === "trouble");
  await (await stage.work()).close(0);
  await server.restart();
  await stage.ask("r-1");
  await stage.outcome("r-1");
  stage.lines.splice(0);
  await server.kill();
  await stage.line("it tries to connect", ({ reason }) => /ECONNREFUSED/.test(reason!));
  const from = performance.now();
  await stage[Symbol.asyncDispose]();
  await assertWithin(performance.now() - from, 12_000, "the end");
});
