import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventRow } from "../../kit/types.ts";
import { chosenOf, replayProblem } from "./chosen-rows.ts";
import { rowKey, withTailed } from "./tail-rows.ts";

function row(id: string, more: Partial<EventRow> = {}): EventRow {
  return {
    source: "shop.outbox",
    id,
    type: "order.placed",
    key: null,
    correlationId: null,
    createdAt: null,
    state: "pending",
    attempts: null,
    reason: null,
    nextAttemptAt: null,
    parkedBehind: null,
    pipeline: null,
    waitsFor: null,
    ...more,
  };
}

const shown = (rows: readonly EventRow[]) => rows.map(({ id, state }) => `${id} ${state}`);

test("F3 a tail puts new events in front and updates the others in place", () => {
  const rows = withTailed(
    [row("2"), row("1")],
    [
      { what: "new", event: row("3") },
      { what: "new", event: row("4") },
      { what: "changed", event: row("1", { state: "delivered" }) },
      { what: "changed", event: row("3", { state: "dead" }) },
      { what: "changed", event: row("0", { state: "delivered" }) },
      { what: "new", event: row("2", { state: "retrying" }) },
    ],
  );
  assert.deepEqual(shown(rows), ["4 pending", "3 dead", "2 retrying", "1 delivered"]);
});

test("F3 a tail that runs for long keeps only the newest rows, and distinguishes events of other sources", () => {
  const many = Array.from({ length: 1_000 }, (_, at) => ({ what: "new" as const, event: row(String(at)) }));
  const rows = withTailed([row("old")], many);
  assert.equal(rows.length, 300);
  assert.equal(rows[0]?.id, "999");
  assert.equal(withTailed([row("1")], [{ what: "new", event: row("1", { source: "other.outbox" }) }]).length, 2);
});

test("F3 a plan takes selected events of one source, all dead or all delivered", () => {
  const dead = row("1", { state: "dead" });
  assert.equal(replayProblem([dead, row("2", { state: "dead" })]), null);
  assert.equal(replayProblem([row("2", { state: "delivered" })]), null);
  assert.match(replayProblem([dead, row("2", { state: "delivered" })]) ?? "", /only one kind/);
  assert.match(replayProblem([row("1")]) ?? "", /only one kind/);
  assert.match(replayProblem([dead, row("1", { state: "dead", source: "other" })]) ?? "", /one source/);
  const first = chosenOf(new Map(), [dead, row("2")], new Set([rowKey(dead)]));
  assert.deepEqual(
    [...chosenOf(first, [row("3")], new Set([rowKey(row("3"))])).values()].map(({ id }) => id),
    ["1", "3"],
  );
});
