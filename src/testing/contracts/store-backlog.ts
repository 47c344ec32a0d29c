import assert from "node:assert/strict";
import { AT_ONCE, DEAD_PARKED, DEAD_SKIPPED, LATER, storeCases } from "./store-stage.ts";

/** Longer than any case takes. */
const AGE_MAX_MS = 60_000;

/** The backlog as operators and alerts see it. */
export const backlogCases = storeCases([
  [
    "A11 the backlog of an empty table is empty and has no age",
    async (stage) => {
      const owner = await stage.own();
      assert.deepEqual(await owner.store.backlog(), {
        pending: 0,
        isEstimate: false,
        oldestAgeMs: null,
        behindDead: 0,
        dead: 0,
      });
    },
  ],
  [
    "A11 undelivered events are counted exactly, in flight or not, with the age of the oldest, until they are delivered",
    async (stage) => {
      await stage.write("a1 b1 a2 -1");
      const owner = await stage.own();
      await owner.read();
      const { oldestAgeMs, ...before } = await owner.store.backlog();
      assert.deepEqual(before, { pending: 4, isEstimate: false, behindDead: 0, dead: 0 });
      assert.ok(oldestAgeMs !== null && oldestAgeMs >= 0 && oldestAgeMs < AGE_MAX_MS, `${oldestAgeMs} ms`);
      await owner.settle({ delivered: stage.ids("a1 b1 -1") });
      assert.equal((await owner.store.backlog()).pending, 1);
      await owner.settle({ delivered: stage.ids("a2") });
      assert.deepEqual(await owner.store.backlog(), {
        pending: 0,
        isEstimate: false,
        oldestAgeMs: null,
        behindDead: 0,
        dead: 0,
      });
    },
  ],
  [
    "A9 the backlog counts failed events that are retried, and the events behind them",
    async (stage) => {
      await stage.write("a1 a2 -1");
      const owner = await stage.own();
      await owner.read();
      await owner.settle({
        failed: [stage.failure("a1", LATER), stage.failure("-1", AT_ONCE)],
        handedBack: stage.ids("a2"),
      });
      const { pending, oldestAgeMs, dead } = await owner.store.backlog();
      assert.deepEqual([pending, dead], [3, 0]);
      assert.ok(oldestAgeMs !== null);
    },
  ],
  [
    "A9 H1 dead letters and the events behind them are not pending, and both are counted",
    async (stage) => {
      await stage.write("a1 a2 b1 b2 -1");
      const owner = await stage.own();
      await owner.read();
      const dead = [
        stage.failure("a1", DEAD_PARKED),
        stage.failure("b1", DEAD_SKIPPED),
        stage.failure("-1", DEAD_SKIPPED),
      ];
      await owner.settle({ failed: dead, handedBack: stage.ids("a2 b2") });
      const left = await owner.store.backlog();
      assert.deepEqual([left.pending, left.behindDead, left.dead], [1, 1, 3], "only b2 waits for the relay");
      await owner.read();
      await owner.settle({ delivered: stage.ids("b2") });
      const rest = { pending: 0, isEstimate: false, oldestAgeMs: null, behindDead: 1, dead: 3 };
      assert.deepEqual(await owner.store.backlog(), rest);
    },
  ],
  [
    "the backlog of a pipeline counts only its own types",
    async (stage) => {
      await stage.write("a1", { type: "mine" });
      await stage.write("b1 b2", { type: "other" });
      const types = [
        { pattern: "other", mine: false },
        { pattern: "*", mine: true },
      ];
      const owner = await stage.own({ types });
      assert.equal((await owner.store.backlog()).pending, 1);
    },
  ],
]);
