import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type RedisServer, startRedis } from "../../test/servers/redis.ts";
import { until } from "../../test/servers/until.ts";
import { TENANT, WorkerStage } from "../../test/servers/worker-stage.ts";
import { isRelayError } from "../core/errors.ts";
import { exponentialRetry, scheduledRetry } from "../core/retry-policy.ts";
import { memoryEventLog } from "../testing/memory-event-log.ts";
import { FinalFailure, RetryLater } from "./failures.ts";
import { requestWorker } from "./request-worker.ts";
import type { ExecuteContext, RecordedOutcome } from "./worker-options.ts";

let server: RedisServer;

before(async () => {
  server = await startRedis(["--maxmemory-policy", "noeviction", "--appendfsync", "no"]);
});

after(() => server[Symbol.asyncDispose]());

test("E6 E7 a request is executed once, and its outcome is in the log at the expected revision with all ids", async () => {
  await using stage = new WorkerStage(server.url);
  const seen: ExecuteContext[] = [];
  const projected: RecordedOutcome[] = [];
  await stage.work({
    execute: (request, context) => {
      seen.push(context);
      return { paid: (request.asking.data as { amount: number }).amount, reference: "tx-1" };
    },
    project: (outcome) => projected.push(outcome),
  });
  const askingId = await stage.ask("r-1", { amount: 25 });
  const outcome = await stage.outcome("r-1");
  await stage.finished(askingId);
  assert.equal(outcome.type, "PayoutCompleted.v1");
  assert.equal(outcome.revision, 1n);
  assert.deepEqual(outcome.data, { id: "r-1", result: { paid: 25, reference: "tx-1" } });
  const [context] = stage.context.split(".");
  assert.deepEqual(outcome.metadata, {
    correlationId: "corr-r-1",
    causationId: askingId,
    source: `service://${context}/payout`,
    tenant: TENANT,
    eventId: outcome.id,
  });
  assert.equal(seen.length, 1);
  assert.deepEqual([seen[0]!.idempotencyKey, seen[0]!.attempt, seen[0]!.jobId], ["core:r-1:0", 1, askingId]);
  assert.equal(seen[0]!.correlationId, "corr-r-1");
  assert.deepEqual(
    projected.map(({ eventId, isRepeated, kind }) => [eventId, isRepeated, kind]),
    [[outcome.id, false, "completed"]],
  );
  assert.equal(await stage.redis.exists(lockKey(stage, "r-1")), 0, "the lock is free");
});

const lockKey = ({ context }: WorkerStage, requestId: string) => `${context}:v1:{core}:execute-lock:${requestId}`;

test("E7 every log line about a job has all ids, whatever became of it", async () => {
  await using stage = new WorkerStage(server.url);
  await stage.work({
    execute: ({ requestId }) => {
      if (requestId === "bad") throw new FinalFailure("no such account");
    },
  });
  const good = await stage.ask("good");
  const bad = await stage.ask("bad");
  await Promise.all([good, bad].map((id) => stage.finished(id)));
  const logged = stage.lines.map(({ outcome, requestId }) => `${requestId} ${outcome}`).sort();
  assert.deepEqual(logged, ["bad failed", "bad started", "good completed", "good started"]);
  for (const line of stage.lines) {
    const { causationId, correlationId, eventId, jobId, requestId, source, stream, tenant } = line;
    assert.deepEqual(
      { causationId, correlationId, eventId, jobId, source, stream, tenant },
      {
        causationId: `cmd-${requestId}`,
        correlationId: `corr-${requestId}`,
        eventId: requestId === "good" ? good : bad,
        jobId: requestId === "good" ? good : bad,
        source: "service://shop/checkout",
        stream: stage.streamOf(requestId!),
        tenant: TENANT,
      },
    );
  }
  const counted = stage.samples.filter(({ name }) => name === "outbox_requests_total");
  assert.deepEqual(counted.map(({ labels }) => labels.outcome).sort(), ["completed", "failed"]);
  for (const { labels } of stage.samples) assert.equal(labels.namespace, stage.context);
});

test("E3 nothing of the request, its result or its failure is in Redis", async () => {
  await using stage = new WorkerStage(server.url);
  await stage.work({
    execute: ({ requestId }) => {
      if (requestId === "r-2") throw new Error("SECRET-REASON");
      return { iban: "SECRET-RESULT" };
    },
  });
  const ids = [await stage.ask("r-1", { card: "SECRET-CARD" }), await stage.ask("r-2", { card: "SECRET-CARD" })];
  await Promise.all(ids.map((id) => stage.finished(id)));
  for (const id of ids) {
    const job = await stage.queue.getJob(id);
    assert.deepEqual(Object.keys(job!.data).sort(), ["requestId", "tenant"]);
    assert.doesNotMatch(JSON.stringify(job!.asJSON()), /SECRET/);
  }
});

test("E6 a job that is delivered again after its outcome is skipped, and projected again", async () => {
  await using stage = new WorkerStage(server.url);
  let executed = 0;
  const projected: RecordedOutcome[] = [];
  await stage.work({ execute: () => (executed += 1), project: (outcome) => projected.push(outcome) });
  const id = await stage.ask("r-1");
  await stage.finished(id);
  await (await stage.queue.getJob(id))!.remove();
  await stage.enqueue(id, "r-1");
  await until("it was projected again", () => projected.length === 2);
  assert.equal(executed, 1);
  assert.equal(stage.outcomes("r-1").length, 1);
  const [first, second] = projected;
  assert.deepEqual({ ...second, isRepeated: false }, { ...first, metadata: second!.metadata });
  assert.equal(second!.isRepeated, true);
  const line = await stage.line("the skip is logged", ({ outcome }) => outcome === "skipped");
  assert.match(line.reason!, /already recorded/);
});

test("E6 a request that ended since it was asked for is not executed", async () => {
  await using stage = new WorkerStage(server.url);
  let executed = 0;
  const id = await stage.append("r-1", "PayoutCreated.v1");
  await stage.append("r-1", "PayoutCancelled.v1");
  await stage.enqueue(id, "r-1");
  await stage.work({ execute: () => (executed += 1), outcomes: { ended: ["PayoutCancelled.v1"] } });
  assert.equal(await stage.finished(id), "completed");
  assert.deepEqual([executed, stage.outcomes("r-1").length], [0, 0]);
  assert.match(stage.lines[0]!.reason!, /ended by PayoutCancelled\.v1 at revision 1/);
});

test("E6 another writer appends during execution: the outcome is recorded after it, and a recorded outcome wins", async () => {
  await using stage = new WorkerStage(server.url);
  let executed = 0;
  await stage.work({
    execute: async ({ asking, requestId }) => {
      executed += 1;
      if (requestId === "noted") await stage.append(requestId, "PayoutNoteAdded.v1");
      else await stage.append(requestId, "PayoutCompleted.v1", { causationId: asking.id });
      return "mine";
    },
  });
  const noted = await stage.ask("noted");
  const raced = await stage.ask("raced");
  await Promise.all([noted, raced].map((id) => stage.finished(id)));
  const [behind] = stage.outcomes("noted");
  assert.deepEqual([behind!.revision, (behind!.data as { result: string }).result], [2n, "mine"]);
  assert.equal(stage.outcomes("raced").length, 1);
  assert.notDeepEqual(stage.outcomes("raced")[0]!.data, { id: "raced", result: "mine" });
  assert.equal(executed, 2);
});

test("E6 a stream that changes without end: the job fails visibly and says what to do", async () => {
  await using stage = new WorkerStage(server.url);
  const { log } = stage;
  const append: typeof log.append = async (stream, last, events) => {
    await stage.append("r-1", "PayoutNoteAdded.v1");
    return await log.append(stream, last, events);
  };
  await stage.work({ log: { ...log, append } });
  const id = await stage.ask("r-1");
  assert.equal(await stage.finished(id), "failed");
  const { correlationId, reason } = await stage.line("it is logged", ({ outcome }) => outcome === "broken");
  assert.equal(correlationId, "corr-r-1");
  assert.equal(stage.lines.filter(({ outcome }) => outcome === "broken").length, 1);
  assert.match(reason!, /was executed, but its outcome cannot be recorded.*WRONG_REVISION.*retry the job/s);
});

test("E6 a schedule: failures ask for the next try, attempts and key come from the log, the last one is final", async () => {
  await using stage = new WorkerStage(server.url);
  const seen: [number, string][] = [];
  stage.relay();
  await stage.work({
    retry: scheduledRetry([1, 5]),
    execute: (_, { attempt, idempotencyKey }) => {
      seen.push([attempt, idempotencyKey]);
      throw new Error(`refused ${attempt}`);
    },
  });
  const id = await stage.append("r-1", "PayoutCreated.v1", { intent: "outbox" });
  await until("the schedule is over", () => stage.outcomes("r-1").length === 3);
  const failed = stage.outcomes("r-1");
  await stage.finished(failed[1]!.id);
  assert.deepEqual(
    failed.map(({ data }) => data),
    [1, 2, 3].map((attempt) => ({ id: "r-1", reason: `refused ${attempt}`, attempt, final: attempt === 3 })),
  );
  assert.deepEqual(
    failed.map(({ metadata }) => [metadata!.intent, metadata!.causationId, metadata!.correlationId]),
    [
      ["outbox", id, "corr-r-1"],
      ["outbox", failed[0]!.id, "corr-r-1"],
      [undefined, failed[1]!.id, "corr-r-1"],
    ],
  );
  assert.equal(failed[2]!.metadata!.notBefore, undefined);
  assert.deepEqual(seen, [
    [1, "core:r-1:0"],
    [2, "core:r-1:0"],
    [3, "core:r-1:0"],
  ]);
  // A new request of the domain starts again.
  await stage.append("r-1", "PayoutQueued.v1", { intent: "outbox" });
  await until("it was tried again", () => seen.length >= 4);
  assert.deepEqual(seen[3], [1, "core:r-1:4"]);
});

test("E6 a scheduled retry that succeeds is the outcome; the exponential policy has its jitter and its bound", async () => {
  await using stage = new WorkerStage(server.url);
  stage.relay();
  await stage.work({
    retry: exponentialRetry({ initialMs: 10, maxMs: 40, jitter: 0.5, attemptsMax: 5 }),
    execute: (_, { attempt }) => {
      if (attempt < 4) throw new Error("not yet");
      return attempt;
    },
  });
  await stage.append("r-1", "PayoutCreated.v1", { intent: "outbox" });
  await until("it is completed", () => stage.outcomes("r-1").some(({ type }) => type === "PayoutCompleted.v1"));
  const [one, two, three, completed] = stage.outcomes("r-1");
  assert.deepEqual(completed!.data, { id: "r-1", result: 4 });
  const waits = [one, two, three].map((event) => Date.parse(String(event!.metadata!.notBefore)) - event!.createdMs);
  for (const [index, wait] of waits.entries()) assert.ok(wait <= 1.5 * 10 * 2 ** index + 1, `${wait}`);
});

test("E6 retries by the domain: a failure asks for nothing, and says when the provider wants to be asked again", async () => {
  await using stage = new WorkerStage(server.url);
  stage.relay();
  await stage.work({
    execute: () => {
      throw new RetryLater("busy", 60_000);
    },
  });
  await stage.append("r-1", "PayoutCreated.v1", { intent: "outbox" });
  const { createdMs, data, metadata } = await stage.outcome("r-1");
  assert.deepEqual(data, { id: "r-1", reason: "busy", attempt: 1, final: false });
  assert.equal(metadata!.intent, undefined);
  assert.ok(Math.abs(Date.parse(String(metadata!.notBefore)) - createdMs - 60_000) < 5_000);
});

test("E6 a resolve of one's own gives execute what it needs; what it throws is a failure of the request", async () => {
  await using stage = new WorkerStage(server.url);
  const worker = requestWorker<{ iban: string }>({
    context: stage.context,
    redis: server.url,
    log: stage.log,
    resolve: ({ requestId }) => {
      if (requestId === "r-2") throw new FinalFailure("no snapshot");
      return { iban: "DE00" };
    },
    execute: ({ iban }) => iban,
  });
  await worker.run();
  await Promise.all([stage.ask("r-1"), stage.ask("r-2")]);
  assert.deepEqual((await stage.outcome("r-1")).data, { id: "r-1", result: "DE00" });
  assert.deepEqual((await stage.outcome("r-2")).data, { id: "r-2", reason: "no snapshot", attempt: 1, final: true });
  await worker.close();
});

test("E6 bad jobs fail visibly: no reference, an event that is not in the stream", async () => {
  await using stage = new WorkerStage(server.url);
  await stage.work();
  await stage.queue.add("execute-request", { tenant: TENANT }, { jobId: "no-reference" });
  await stage.enqueue("unknown-event", "r-9");
  for (const id of ["no-reference", "unknown-event"]) assert.equal(await stage.finished(id), "failed");
  assert.match((await stage.queue.getJob("no-reference"))!.failedReason, /has no \{ tenant, requestId \}/);
  assert.match(
    (await stage.queue.getJob("unknown-event"))!.failedReason,
    /payout\.request-core-r-9, which does not exist/,
  );
});

test("E6 settings that cannot be right are refused by name, without the password", () => {
  const log = memoryEventLog();
  const good = { context: "payment.payout", redis: server.url, log, execute: () => {} };
  const refused: readonly (readonly [object, RegExp])[] = [
    [{ context: "payment" }, /"payment" is not of the form <context>\.<aggregate>/],
    [{ redis: "http://user:hunter2@host" }, /redis is not an address/],
    [{ queue: "a:b" }, /queue is "a:b"/],
    [{ concurrency: 0 }, /concurrency is 0/],
    [{ lockMs: 5 }, /lockMs is 5/],
    [{ outcomes: { completed: "A", failed: "A" } }, /same type/],
  ];
  for (const [option, expected] of refused) {
    assert.throws(
      () => requestWorker({ ...good, ...option }),
      (error) =>
        isRelayError(error, "CONFIG_INVALID") && expected.test(error.message) && !error.message.includes("hunter2"),
    );
  }
});
