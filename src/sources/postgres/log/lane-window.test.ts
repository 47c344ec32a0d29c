import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ClaimedEvent } from "../../../ports/queue-store.ts";
import { LaneWindow } from "./lane-window.ts";

const SEGMENT = { name: "s" };

function row(mark: number) {
  const event: ClaimedEvent = {
    id: `e${mark}`,
    type: "t",
    key: null,
    payload: Buffer.alloc(0),
    headers: {},
    correlationId: null,
    createdAt: null,
    lane: 0,
    failures: 0,
    fault: null,
  };
  return { event, mark, segment: SEGMENT };
}

function settle(window: LaneWindow<unknown>, marks: readonly number[]): void {
  for (const mark of marks) window.waiting(`e${mark}`)!.isSettled = true;
}

test("A1 the checkpoint is before the first unsettled row, and rows settled beyond it are listed", () => {
  const window = new LaneWindow<unknown>({ segment: SEGMENT, mark: 0 });
  for (const mark of [3, 5, 8, 9]) window.add(row(mark));
  window.head = { segment: SEGMENT, mark: 9 };
  assert.deepEqual(window.low, { segment: SEGMENT, mark: 2 });
  settle(window, [3, 8]);
  assert.deepEqual([window.low.mark, window.ahead().map(({ mark }) => mark)], [4, [8]]);
  settle(window, [5]);
  assert.deepEqual([window.low.mark, window.ahead()], [8, []]);
  settle(window, [9]);
  assert.equal(window.low, window.head);
});

test("A1 whatever is settled in whatever order: no unsettled row lies before the checkpoint, no settled row counts as unsettled", () => {
  const steps = fc.array(fc.record({ read: fc.nat(5), settled: fc.array(fc.nat(40)), trims: fc.boolean() }));
  fc.assert(
    fc.property(steps, (plan) => {
      const window = new LaneWindow<unknown>({ segment: SEGMENT, mark: 0 });
      const waiting = new Set<number>();
      let last = 0;
      for (const { read, settled, trims } of plan) {
        for (let count = 0; count < read; count++) {
          last += 1;
          waiting.add(last);
          window.add(row(last));
        }
        window.head = { segment: SEGMENT, mark: last };
        for (const mark of settled.filter((it) => waiting.delete(it))) settle(window, [mark]);
        if (trims) window.trim(() => {});
        const first = Math.min(...waiting, last + 1);
        assert.equal(window.low.mark, first - 1);
        const ahead = Array.from({ length: last - first + 1 }, (_, at) => first + at).filter((it) => !waiting.has(it));
        assert.deepEqual(
          window.ahead().map(({ mark }) => mark),
          ahead,
        );
        assert.deepEqual(
          window.allWaiting().map(({ mark }) => mark),
          [...waiting].sort((one, other) => one - other),
        );
      }
    }),
  );
});
