import assert from "node:assert/strict";
import type { Hold } from "../../core/hold.ts";
import {
  AT_ONCE,
  assertFenced,
  DEAD_PARKED,
  DEAD_SKIPPED,
  LATER,
  type Owner,
  type Stage,
  storeCases,
} from "./store-stage.ts";

/** An owner that has read these events and not settled them yet. */
async function reader(stage: Stage, names: string): Promise<Owner> {
  await stage.write(names);
  const owner = await stage.own();
  await owner.read();
  return owner;
}

async function holdsOf(owner: Owner): Promise<readonly Hold[]> {
  return owner.store.reviewHolds(owner.takeoverOf().grant);
}

async function heads(owner: Owner, names: string) {
  return owner.store.claimHeads(owner.takeoverOf().grant, owner.stage.ids(names));
}

/** Hands back unsettled events, so that the next run may return them. */
async function giveBack(owner: Owner, names: string): Promise<void> {
  await owner.settle({ handedBack: owner.stage.ids(names) });
}

/** How a failing event affects its key. */
export const holdCases = storeCases([
  [
    "A8 a failed event makes a hold that survives its owner, with attempts and due time",
    async (stage) => {
      const owner = await reader(stage, "a1 -1");
      await owner.settle({ failed: [stage.failure("a1", LATER, { attempts: 2 }), stage.failure("-1", AT_ONCE)] });
      await owner.die();
      const { holds } = (await stage.own()).takeoverOf();
      const ofKey = holds.find(({ id }) => id === stage.id("a1"));
      assert.ok(ofKey !== undefined && ofKey.dueInMs !== null);
      assert.ok(ofKey.dueInMs > 540_000 && ofKey.dueInMs <= 600_000, `due in ${ofKey.dueInMs} ms`);
      assert.deepEqual(
        { ...ofKey, dueInMs: 0 },
        {
          id: stage.id("a1"),
          key: "a",
          lane: 0,
          state: "retrying",
          parks: true,
          attempts: 2,
          crashes: 0,
          dueInMs: 0,
        },
      );
      const keyless = holds.find(({ id }) => id === stage.id("-1"));
      assert.deepEqual([keyless?.key, keyless?.attempts, keyless?.state], [null, 1, "retrying"]);
      assert.ok(keyless?.dueInMs !== null && keyless!.dueInMs <= 0);
    },
  ],

  [
    "F2 a run does not return a held event and the later ones of its key, but other keys",
    async (stage) => {
      const owner = await reader(stage, "a1 b1 a2 b2");
      await owner.settle({ failed: [stage.failure("a1", AT_ONCE)], handedBack: stage.ids("a2 b1 b2") });
      await stage.write("a3 b3");
      assert.equal(await owner.sees(), "b1 b2 b3");
    },
  ],

  [
    "F2 events without a key are never held back, only the failed one itself",
    async (stage) => {
      const owner = await reader(stage, "-1 -2 a1");
      const failed = [stage.failure("-1", LATER), stage.failure("a1", LATER)];
      await owner.settle({ failed, handedBack: stage.ids("-2") });
      await stage.write("-3 a2");
      assert.equal(await owner.sees(), "-2 -3");
    },
  ],

  [
    "the probe does not count held events",
    async (stage) => {
      const owner = await reader(stage, "a1 a2");
      await owner.settle({ failed: [stage.failure("a1", LATER)], handedBack: stage.ids("a2") });
      assert.equal(await owner.store.probe(owner.grants), false);
    },
  ],

  [
    "a due head is claimed with its payload and failures; a head that is not due is in neither list",
    async (stage) => {
      const owner = await reader(stage, "a1 b1");
      await owner.settle({ failed: [stage.failure("a1", AT_ONCE, { attempts: 2 }), stage.failure("b1", LATER)] });
      const { events, gone } = await heads(owner, "a1 b1");
      assert.deepEqual([stage.show(events), gone], ["a1", []]);
      const [head] = events;
      assert.deepEqual([head?.failures, head?.lane, head?.payload.toString()], [2, 0, '"a1"']);
    },
  ],

  [
    "heads whose row another program deleted or marked are gone",
    async (stage) => {
      const owner = await reader(stage, "a1 b1 c1");
      await owner.settle({ failed: ["a1", "b1", "c1"].map((name) => stage.failure(name, AT_ONCE)) });
      await stage.subject.deleteRow(stage.id("a1"));
      await stage.subject.markByHand(stage.id("b1"));
      const { events, gone } = await heads(owner, "a1 b1 c1");
      assert.deepEqual([stage.show(events), stage.showIds(gone)], ["c1", "a1 b1"]);
    },
    ({ isLog = false }) => !isLog,
  ],

  [
    "a second failure of a head replaces its hold",
    async (stage) => {
      const owner = await reader(stage, "a1");
      await owner.settle({ failed: [stage.failure("a1", AT_ONCE)] });
      await heads(owner, "a1");
      await owner.settle({ failed: [stage.failure("a1", LATER, { attempts: 2 })] });
      const holds = await holdsOf(owner);
      assert.deepEqual(
        holds.map(({ attempts, state }) => [attempts, state]),
        [[2, "retrying"]],
      );
      assert.deepEqual(await heads(owner, "a1"), { events: [], gone: [] });
    },
  ],

  [
    "F2 when a head is delivered its hold is released and the later events follow in order",
    async (stage) => {
      const owner = await reader(stage, "a1 a2 a3");
      await owner.settle({ failed: [stage.failure("a1", AT_ONCE)], handedBack: stage.ids("a2 a3") });
      await stage.write("a4");
      await heads(owner, "a1");
      await owner.settle({ delivered: stage.ids("a1"), releasedHolds: stage.ids("a1") });
      assert.deepEqual(await holdsOf(owner), []);
      assert.equal(await owner.sees(), "a2 a3 a4");
    },
  ],

  [
    "F2 a dead event that parks holds back the later ones of its key, and is never returned again",
    async (stage) => {
      const owner = await reader(stage, "a1 a2 b1");
      await owner.settle({ failed: [stage.failure("a1", DEAD_PARKED)], handedBack: stage.ids("a2 b1") });
      assert.equal(await owner.sees(), "b1");
      const [hold] = await holdsOf(owner);
      assert.deepEqual([hold?.state, hold?.parks, hold?.dueInMs], ["dead", true, null]);
      assert.deepEqual((await heads(owner, "a1")).events, []);
      await owner.die();
      const next = await stage.own();
      assert.equal(await next.sees(), "b1");
      assert.equal(next.takeoverOf().holds.find(({ id }) => id === stage.id("a1"))?.state, "dead");
    },
  ],

  [
    "F2 a dead event that does not park lets the later ones continue, and is never returned again",
    async (stage) => {
      const owner = await reader(stage, "a1 a2 -1");
      const failed = [stage.failure("a1", DEAD_SKIPPED), stage.failure("-1", DEAD_SKIPPED)];
      await owner.settle({ failed, handedBack: stage.ids("a2") });
      assert.equal(await owner.sees(), "a2");
      await owner.die();
      const next = await stage.own();
      assert.equal(await next.sees(), "a2");
      assert.deepEqual((await heads(next, "a1")).events, []);
    },
  ],

  [
    "a head that dies without parking lets its key continue",
    async (stage) => {
      const owner = await reader(stage, "a1 a2");
      await owner.settle({ failed: [stage.failure("a1", AT_ONCE)], handedBack: stage.ids("a2") });
      await heads(owner, "a1");
      await owner.settle({ failed: [stage.failure("a1", DEAD_SKIPPED, { attempts: 2 })] });
      assert.equal(await owner.sees(), "a2");
    },
  ],

  [
    "a review drops the holds of rows that were deleted or marked, and their keys continue",
    async (stage) => {
      const owner = await reader(stage, "a1 a2 b1 b2 c1 c2");
      const failed = ["a1", "b1", "c1"].map((name) => stage.failure(name, LATER));
      await owner.settle({ failed, handedBack: stage.ids("a2 b2 c2") });
      await stage.subject.deleteRow(stage.id("a1"));
      await stage.subject.markByHand(stage.id("b1"));
      assert.equal(stage.showIds((await holdsOf(owner)).map(({ id }) => id)), "c1");
      assert.equal(await owner.sees(), "a2 b2");
    },
    ({ isLog = false }) => !isLog,
  ],

  [
    "a review drops the hold of a dead event whose row was deleted",
    async (stage) => {
      const owner = await reader(stage, "a1 a2");
      await owner.settle({ failed: [stage.failure("a1", DEAD_PARKED)], handedBack: stage.ids("a2") });
      await stage.subject.deleteRow(stage.id("a1"));
      assert.deepEqual(await holdsOf(owner), []);
      assert.equal(await owner.sees(), "a2");
    },
    ({ isLog = false }) => !isLog,
  ],

  [
    "a dead event that an operator reset in its own table is retried after a review, before the later ones of its key",
    async (stage) => {
      const owner = await reader(stage, "a1 a2");
      await owner.settle({ failed: [stage.failure("a1", DEAD_PARKED)], handedBack: stage.ids("a2") });
      await stage.subject.resetByHand!(stage.id("a1"));
      const holds = await holdsOf(owner);
      assert.ok(holds.every(({ state }) => state !== "dead"));
      if (holds.length === 0) assert.equal(await owner.sees(), "a1 a2");
      else assert.equal(stage.show((await heads(owner, "a1")).events), "a1");
    },
    ({ ownStatus }) => ownStatus,
  ],

  [
    "B4 a review under an old grant is fenced",
    async (stage) => {
      const owner = await reader(stage, "a1");
      await owner.settle({ failed: [stage.failure("a1", LATER)] });
      await owner.die();
      const successor = await stage.own();
      await assertFenced(owner.store.reviewHolds(owner.takeoverOf().grant));
      assert.equal((await holdsOf(successor)).length, 1);
    },
  ],

  [
    "a suspect is known to the next owner with its crashes counted, held back and due at once",
    async (stage) => {
      let owner = await reader(stage, "a1 a2");
      await giveBack(owner, "a2");
      for (const crashes of [1, 2]) {
        await owner.settle({ suspects: [{ id: stage.id("a1"), key: "a" }] });
        await owner.die();
        owner = await stage.own();
        const [hold] = owner.takeoverOf().holds;
        assert.deepEqual([hold?.id, hold?.state, hold?.crashes], [stage.id("a1"), "suspect", crashes]);
        assert.equal(await owner.sees(), "");
        assert.equal(stage.show((await heads(owner, "a1")).events), "a1");
      }
      await owner.settle({ delivered: stage.ids("a1"), releasedHolds: stage.ids("a1") });
      assert.equal(await owner.sees(), "a2");
    },
  ],

  [
    "a suspect that failed, or was released gracefully with its lane, counts no crash; one of a former owner does",
    async (stage) => {
      await stage.write("a1 b1 c1");
      const former = await stage.own();
      await former.read();
      await former.settle({ suspects: [{ id: stage.id("c1"), key: "c" }] });
      await former.die();
      const first = await stage.own();
      await first.read();
      await first.settle({ suspects: [{ id: stage.id("a1"), key: "a" }] });
      await first.settle({ suspects: [{ id: stage.id("b1"), key: "b" }] });
      await first.settle({ failed: [stage.failure("a1", AT_ONCE)] });
      await first.store.release(first.takeoverOf().grant, stage.ids("a1 b1"));
      const { holds } = (await stage.own()).takeoverOf();
      assert.deepEqual(
        holds.map(({ id, state, crashes }) => [id, state, crashes]).toSorted(),
        [
          [stage.id("a1"), "retrying", 0],
          [stage.id("b1"), "retrying", 0],
          [stage.id("c1"), "suspect", 1],
        ].toSorted(),
      );
    },
  ],

  [
    "a head that becomes a suspect keeps its attempts",
    async (stage) => {
      const owner = await reader(stage, "a1");
      await owner.settle({ failed: [stage.failure("a1", AT_ONCE, { attempts: 2 })] });
      await heads(owner, "a1");
      await owner.settle({ suspects: [{ id: stage.id("a1"), key: "a" }] });
      const [hold] = await holdsOf(owner);
      assert.deepEqual([hold?.attempts, hold?.crashes, hold?.state], [2, 1, "suspect"]);
    },
  ],
]);
