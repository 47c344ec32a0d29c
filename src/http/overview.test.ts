import assert from "node:assert/strict";
import { test } from "node:test";
import { healthOf } from "./health/health.ts";
import { FACTS } from "./health/health-fixture.test.ts";
import { bareOverview, destinationState, findingsOf, markersOf, overviewOf } from "./overview.ts";
import { overviewSchema } from "./schemas/overview.ts";

const facts: Parameters<typeof overviewOf>[0] = {
  nowMs: Date.parse("2026-01-02T03:04:05.000Z"),
  health: healthOf(FACTS),
  waiting: { pending: 1_000, isEstimate: false, oldestAgeMs: 3_000, behindDeadLetters: 1 },
  writtenPerSecond: 1.23456,
  publishedPerSecond: 200,
  failedPerSecond: 0,
  shrinkPerSecond: 50,
  retrying: 1,
  parkedKeys: 2,
  deadLetters: 3,
  unrouted: { events: 0, isEstimate: false },
  publishedTotal: 9_007_199_254_740_993n,
  destinations: [],
  instances: [],
  lastPoint: null,
};

test("F3 the drain time is the backlog divided by the rate at which it shrinks", () => {
  const drained = (more: Partial<typeof facts>) => overviewOf({ ...facts, ...more }).drainMs;
  const waiting = (pending: number | null, isEstimate = false) => ({
    waiting: { pending, isEstimate, oldestAgeMs: 1, behindDeadLetters: 0 },
  });
  assert.equal(drained({}), 20_000);
  assert.equal(drained({ shrinkPerSecond: -1 }), null);
  assert.equal(drained({ shrinkPerSecond: null }), null);
  assert.equal(drained({ ...waiting(0), shrinkPerSecond: null }), 0);
  assert.equal(drained(waiting(null)), null);
  assert.equal(
    drained(waiting(1_000_000, true)),
    5_000_000,
    "an estimate does not shrink, so the delivery rate counts",
  );
  const overview = overviewOf(facts);
  assert.deepEqual([overview.publishedTotal, overview.writtenPerSecond], ["9007199254740993", 1.23]);
  overviewSchema.parse(overview);
});

test("H1 an estimated number of unrouted events is marked in health and overview", () => {
  const unrouted = (isEstimate: boolean) => [
    { source: "a.b", events: 12_000, isEstimate, oldestAgeMs: null },
    { source: "a.c", events: 1, isEstimate: false, oldestAgeMs: null },
  ];
  for (const isEstimate of [true, false]) {
    const health = healthOf({ ...FACTS, unrouted: unrouted(isEstimate) });
    assert.deepEqual([health.unroutedEventCount, health.isUnroutedEstimate === true], [12_001, isEstimate]);
    assert.equal(health.isEstimate, undefined, "which is about the pending events");
    const { isUnroutedEstimate, unrouted: events } = bareOverview(health);
    assert.deepEqual([events, isUnroutedEstimate], [12_001, isEstimate]);
  }
  const overview = overviewOf({ ...facts, unrouted: { events: 12_001, isEstimate: true } });
  assert.deepEqual([overview.unrouted, overview.isUnroutedEstimate], [12_001, true]);
  assert.deepEqual(overviewOf({ ...facts, unrouted: null }).unrouted, null);
  overviewSchema.parse(overview);
});

test("F3 problems come with their fix; the fix of our own errors has priority", () => {
  const broken = [
    { pipeline: "p", code: "COLUMN_MISSING" as const, reason: "there is no id [COLUMN_MISSING] Add the column." },
  ];
  const health = healthOf({ ...FACTS, broken, database: { answers: false, reason: "connection refused" } });
  const { health: status, problems } = bareOverview(health);
  assert.equal(status, "unhealthy");
  assert.equal(problems[0]?.what, "database postgres: connection refused");
  assert.match(problems[0]?.fix ?? "", /^Check that the database runs/);
  assert.deepEqual(problems.at(-1), { what: "source p: there is no id", fix: "Add the column." });
  const [first, ...others] = findingsOf(health);
  assert.deepEqual([first?.severity, first?.check, others.at(-1)?.fix], ["error", "database", "Add the column."]);
});

test("F3 a destination has one state, the one to handle first", () => {
  const nothing = { isPaused: false, isCircuitOpen: false, isUnreachable: false, isBusy: false };
  assert.equal(destinationState(nothing), "idle");
  assert.equal(destinationState({ ...nothing, isBusy: true }), "running");
  assert.equal(destinationState({ ...nothing, isBusy: true, isUnreachable: true }), "unreachable");
  assert.equal(destinationState({ ...nothing, isUnreachable: true, isCircuitOpen: true }), "circuit-open");
  assert.equal(destinationState({ ...nothing, isPaused: true, isCircuitOpen: true }), "paused");
});

test("F3 a marker that both the audit and the relay report appears once", () => {
  const at = (s: number) => new Date(1_000 * s).toISOString();
  const reported = [
    { at: at(0), what: "this process has started", pipeline: null },
    { at: at(12), what: "paused by anna", pipeline: "p" },
    { at: at(100), what: "paused by anna", pipeline: "p" },
  ];
  const actions = [
    { at: at(200), action: "plan-done", target: "plan 7", actor: "relay" },
    { at: at(50), action: "plan-run", target: "plan 7", actor: "bob" },
    { at: at(10), action: "pause", target: "p", actor: "anna" },
  ];
  assert.deepEqual(
    markersOf(reported, actions).map(({ what, pipeline }) => `${what} ${pipeline}`),
    [
      "this process has started null",
      "paused by anna p",
      "replay started by bob null",
      "paused by anna p",
      "replay done null",
    ],
  );
});
