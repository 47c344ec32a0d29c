import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { freePort } from "../../test/servers/free-port.ts";
import type { Clock } from "../core/clock.ts";
import { systemClock } from "../core/clock.ts";
import { BrokerCheck } from "./broker-check.ts";
import { DatabaseCheck } from "./database-check.ts";
import { healthOf, readinessOf } from "./health.ts";
import { FACTS, NOW } from "./health-fixture.test.ts";

const counted = (pending: number, isEstimate = false) => ({
  source: "a.outbox",
  schema: "a",
  last: { pending, isEstimate, oldestAgeMs: null, dead: 0 },
  lagMs: 0,
});

test("H1 A20 what the database quotes of a row is not shown by health, which is open to everybody", () => {
  const reasons = [
    [
      'reading failed: invalid input syntax for type uuid: "cust-7" (SQLSTATE 22P02)',
      'for type uuid: "..." (SQLSTATE 22P02)',
    ],
    ["settling failed: Key (id)=(cust-7) is not present", "failed: Key (...) is not present"],
    ['settling failed: value "cust-7" is out of range for type integer', 'value "..." is out of range'],
    [
      "2 delivered events cannot be marked. Ids: a) [x], cust-7 [ROW_UNMARKED] Remove it",
      "marked. [ROW_UNMARKED] Remove",
    ],
  ];
  for (const [reason = "", shown = ""] of reasons) {
    const broken = [{ pipeline: "b.outbox->kafka", code: "DATABASE_REFUSED", reason } as const];
    const told = healthOf({ ...FACTS, broken }).problems?.[0]?.reason ?? "";
    assert.ok(told.includes(shown), told);
    assert.doesNotMatch(told, /cust-7/);
  }
});

test("A18 a healthy relay, idle or not, says exactly what was agreed", () => {
  assert.deepEqual(healthOf({ ...FACTS, backlog: [counted(3), counted(4)] }), {
    status: "healthy",
    service: "outbox-relay",
    timestamp: "2026-01-10T12:00:00.000Z",
    uptime: 3_600,
    lastPollTime: "2026-01-10T11:59:59.000Z",
    unpublishedEventCount: 7,
  });
  assert.equal(healthOf({ ...FACTS, backlog: [counted(0)] }).status, "healthy");
});

test("A18 A7 what is broken in part is degraded and named", () => {
  const broken = [{ pipeline: "b.outbox->kafka", code: "TABLE_MISSING", reason: "it does not exist" } as const];
  const degraded = healthOf({ ...FACTS, broken });
  assert.equal(degraded.status, "degraded");
  assert.deepEqual(degraded.problems, [{ part: "source", name: "b.outbox->kafka", reason: "it does not exist" }]);
  const warnings = [{ pipeline: "b.outbox->kafka", code: "ROWS_HIDDEN", reason: "hidden rows" } as const];
  const warned = healthOf({ ...FACTS, warnings });
  assert.deepEqual([warned.status, warned.problems?.[0]?.reason], ["degraded", "hidden rows"]);
  const circuits = [{ destination: "kafka", topic: "t", reason: "unknown topic" }];
  assert.equal(healthOf({ ...FACTS, circuits }).problems?.[0]?.name, "kafka topic t");
  const silent = healthOf({ ...FACTS, unreachable: ["kafka"] });
  assert.deepEqual([silent.status, silent.problems?.length], ["degraded", 1]);
  const told = { ...FACTS, unreachable: ["kafka"], circuits: [{ destination: "kafka", topic: null, reason: "down" }] };
  assert.equal(healthOf(told).problems?.length, 1, "one trouble is told once");
});

test("H1 a lane that takes nothing new is named, with what to do", () => {
  const degraded = healthOf({ ...FACTS, brakedLanes: [{ pipeline: "b.outbox->kafka", lane: 2, holds: 10_000 }] });
  assert.equal(degraded.status, "degraded");
  assert.match(degraded.problems?.[0]?.reason ?? "", /^lane 2 takes no new events: 10000 failed events .*discard/);
});

test("A18 a database that does not answer, and a poll too long ago, are unhealthy", () => {
  const gone = healthOf({ ...FACTS, database: { answers: false, reason: "refused" } });
  assert.deepEqual(
    [gone.status, gone.problems?.[0]],
    ["unhealthy", { part: "database", name: "postgres", reason: "refused" }],
  );
  assert.equal(gone.unpublishedEventCount, null, "nobody could count");
  assert.equal(healthOf({ ...FACTS, lastPollMs: NOW - 30_000 }).status, "healthy");
  assert.equal(healthOf({ ...FACTS, lastPollMs: NOW - 30_001 }).status, "unhealthy");
  const slow = { ...FACTS, pollIntervalMs: 20_000, lastPollMs: NOW - 60_000 };
  assert.equal(healthOf(slow).status, "healthy", "three intervals are allowed where they are longer");
  assert.equal(healthOf({ ...FACTS, uptimeS: 2, lastPollMs: null }).status, "degraded");
  assert.equal(healthOf({ ...FACTS, uptimeS: 31, lastPollMs: null }).status, "unhealthy");
});

test("A18 a relay that nobody could count yet is not called healthy, and its number is none", () => {
  const early = healthOf({ ...FACTS, backlog: [{ ...counted(0), last: null }] });
  assert.deepEqual([early.status, early.unpublishedEventCount], ["degraded", null]);
  assert.equal(early.problems?.[0]?.reason, "nobody has counted yet");
});

test("A18 a count that is an estimate says so", () => {
  const health = healthOf({ ...FACTS, backlog: [counted(1_000_000, true)] });
  assert.deepEqual([health.unpublishedEventCount, health.isEstimate], [1_000_000, true]);
});

class SetClock implements Clock {
  nowMs = 0;
  wallMs = () => this.nowMs;
  monotonicMs = () => this.nowMs;
  sleep = async () => {};
}

test("A18 a database that hangs is not waited for, and is not asked while the relay's work shows that it answers", async () => {
  const clock = new SetClock();
  let asked = 0;
  const check = new DatabaseCheck(clock, () => {
    asked += 1;
    return new Promise<void>(() => {});
  });
  check.answered();
  clock.nowMs += 4_999;
  assert.deepEqual([await check.state(), asked], [{ answers: true, reason: null }, 0]);
  clock.nowMs += 1;
  const silent = { answers: false, reason: "it did not answer within 1000 ms" };
  assert.deepEqual([await check.state(), await check.state(), asked], [silent, silent, 1]);
  const refusing = new DatabaseCheck(systemClock, async () => {
    throw new Error("no");
  });
  assert.deepEqual(await refusing.state(), { answers: false, reason: "no" });
});

test("A18 an idle relay notices that its brokers are gone", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const [nobody, clock] = [await freePort(), new SetClock()];
  const check = new BrokerCheck(clock, [`127.0.0.1:${nobody}`, `127.0.0.1:${port}`]);
  assert.equal(await check.isReachable(), true, "one of them is enough");
  server.close();
  assert.equal(await check.isReachable(), true, "not asked again so soon");
  clock.nowMs += 30_000;
  assert.equal(await check.isReachable(), false);
  check.delivered();
  assert.equal(await check.isReachable(), true);
  assert.equal(await new BrokerCheck(clock, []).isReachable(), true, "no broker, nothing to miss");
});

test("A18 C8 readiness follows the database and the loops, and nothing else", () => {
  const fine = { answers: true, reason: null };
  assert.deepEqual(readinessOf(fine, FACTS), { isReady: true, checks: { database: "ok", loops: "ok" } });
  const refused = readinessOf({ answers: false, reason: "refused" }, FACTS);
  assert.deepEqual(refused, { isReady: false, checks: { database: "refused", loops: "ok" } });
  const still = readinessOf(fine, { ...FACTS, lastPollMs: NOW - 31_000 });
  assert.deepEqual([still.isReady, still.checks.loops], [false, "no source could be polled for 31 s"]);
  assert.ok(readinessOf(fine, { ...FACTS, lastPollMs: NOW - 31_000, pollIntervalMs: 11_000 }).isReady, "a slow table");
  assert.ok(readinessOf(fine, { ...FACTS, lastPollMs: null, uptimeS: 5 }).isReady, "it has just started");
  assert.equal(readinessOf(fine, { ...FACTS, lastPollMs: null, uptimeS: 31 }).isReady, false);
});
