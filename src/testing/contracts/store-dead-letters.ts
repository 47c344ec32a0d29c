import assert from "node:assert/strict";
import { AT_ONCE, DEAD_PARKED, DEAD_SKIPPED, storeCases } from "./store-stage.ts";

/** Rules of dead letters. */
export const deadLetterCases = storeCases([
  [
    "A10 a dead letter keeps payload, reason, count, first and last failure and the error of every attempt",
    async (stage) => {
      const payload = Buffer.from('{"total": 12.50}');
      await stage.write("a1", { payload });
      const owner = await stage.own();
      await owner.read();
      const startedMs = Date.now();
      await owner.settle({ failed: [stage.failure("a1", AT_ONCE, { attempts: 1, reason: "first" })] });
      await owner.store.claimHeads(owner.takeoverOf().grant, stage.ids("a1"));
      await owner.settle({ failed: [stage.failure("a1", AT_ONCE, { attempts: 2, reason: 'it\'s "second" \\ 🔑' })] });
      await owner.store.claimHeads(owner.takeoverOf().grant, stage.ids("a1"));
      const last = stage.failure("a1", DEAD_PARKED, { attempts: 3, reason: "third" });
      const { dead: [note] = [] } = await owner.settle({ failed: [last] });
      assert.deepEqual([note?.id, note?.type], [stage.id("a1"), "t"]);
      assert.deepEqual(
        note?.errors.map(({ attempt }) => attempt),
        [1, 2, 3],
      );
      for (const time of [note?.firstFailedAt, note?.lastFailedAt, ...(note?.errors ?? []).map(({ at }) => at)]) {
        assert.ok(Math.abs(Date.parse(time ?? "") - startedMs) < 60_000, time);
      }
      const letters = await stage.subject.deadLetters();
      assert.equal(letters.length, 1);
      const letter = letters[0]!;
      assert.deepEqual([letter.id, letter.payload.toString()], [stage.id("a1"), payload.toString()]);
      assert.deepEqual([letter.reason, letter.failures], ["third", 3]);
      assert.deepEqual(letter.errors, ["first", 'it\'s "second" \\ 🔑', "third"]);
      assert.ok(letter.firstFailedAt <= letter.lastFailedAt);
      assert.ok(Math.abs(letter.firstFailedAt.getTime() - startedMs) < 60_000);
    },
  ],

  [
    "A10 an event that is dead after its first failure has a dead letter too",
    async (stage) => {
      await stage.write("a1 -1");
      const owner = await stage.own();
      await owner.read();
      const failed = [stage.failure("a1", DEAD_SKIPPED, { reason: "too large" }), stage.failure("-1", DEAD_PARKED)];
      await owner.settle({ failed });
      const letters = await stage.subject.deadLetters();
      assert.equal(stage.showIds(letters.map(({ id }) => id)), "-1 a1");
      const letter = letters.find(({ id }) => id === stage.id("a1"));
      assert.deepEqual([letter?.reason, letter?.failures, letter?.errors], ["too large", 1, ["too large"]]);
    },
  ],

  [
    "C2 a dead event is isolated, never deleted and never marked delivered",
    async (stage) => {
      await stage.write("a1 b1");
      const owner = await stage.own();
      await owner.read();
      await owner.settle({ delivered: stage.ids("b1"), failed: [stage.failure("a1", DEAD_PARKED)] });
      assert.equal(await stage.delivered(), "b1");
      assert.equal(await stage.dead(), "a1");
      assert.equal(await stage.pending(), "");
    },
  ],

  [
    "A10 an event that is delivered after failures has no dead letter",
    async (stage) => {
      await stage.write("a1");
      const owner = await stage.own();
      await owner.read();
      await owner.settle({ failed: [stage.failure("a1", AT_ONCE)] });
      await owner.store.claimHeads(owner.takeoverOf().grant, stage.ids("a1"));
      await owner.settle({ delivered: stage.ids("a1"), releasedHolds: stage.ids("a1") });
      assert.equal(await stage.dead(), "");
      assert.equal(await stage.delivered(), "a1");
    },
  ],
]);
