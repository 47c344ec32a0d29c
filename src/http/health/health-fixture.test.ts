import assert from "node:assert/strict";
import { test } from "node:test";
import { type HealthFacts, healthOf } from "./health.ts";

/** The current time of the health tests. */
export const NOW = Date.parse("2026-01-10T12:00:00Z");

/** The facts of a healthy relay. */
export const FACTS: HealthFacts = {
  service: "outbox-relay",
  nowMs: NOW,
  uptimeS: 3_600,
  database: { answers: true, reason: null },
  lastPollMs: NOW - 1_000,
  pollIntervalMs: 500,
  broken: [],
  circuits: [],
  brakedLanes: [],
  unreachable: [],
  backlog: [],
  remarks: [],
};

test("the facts of the fixture are those of a healthy relay", () => {
  const { status, problems } = healthOf(FACTS);
  assert.deepEqual([status, problems], ["healthy", undefined]);
});
