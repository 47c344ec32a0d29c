import assert from "node:assert/strict";
import type { DurableClaims } from "../../ports/queue-store.ts";
import { AT_ONCE, BYTES_MAX, type Owner, storeCases } from "./store-stage.ts";
import type { StoreCapabilities } from "./store-subject.ts";

const durable = ({ durableClaims }: StoreCapabilities) => durableClaims;

function claimsOf(owner: Owner): DurableClaims {
  return owner.store.durableClaims ?? assert.fail("the harness promises durable claims, the store has none");
}

async function failuresOf(owner: Owner): Promise<[string, number][]> {
  const events = await owner.read();
  return events.map((event): [string, number] => [owner.stage.showIds([event.id]), event.failures]).sort();
}

/** Claims that are written into the row, beside relays that are not ours. */
export const durableClaimCases = storeCases([
  [
    "a store without durable claims has none",
    async (stage) => {
      assert.equal((await stage.join()).store.durableClaims, null);
    },
    ({ durableClaims }) => !durableClaims,
  ],

  [
    "B3 claimed events are not shown to a second run, handed back ones are, without an attempt counted",
    async (stage) => {
      await stage.write("a1 a2 b1");
      const owner = await stage.own();
      const events = await owner.read();
      assert.equal(stage.show(await owner.read()), "");
      await owner.handBack(events.slice(0, 2));
      const again = await owner.read();
      assert.equal(again.length, 2);
      assert.ok(again.every(({ failures }) => failures === 0));
    },
    durable,
  ],

  [
    "B5 what a dead owner had claimed is freed at take-over with one attempt counted",
    async (stage) => {
      await stage.write("a1 a2 b1");
      const first = await stage.own();
      const claimed = await first.inRun((run) => run.next(2, BYTES_MAX));
      await first.die();
      const second = await stage.own();
      const expected = ["a1", "a2", "b1"].map((name): [string, number] => [
        name,
        claimed.some(({ id }) => id === stage.id(name)) ? 1 : 0,
      ]);
      assert.deepEqual(await failuresOf(second), expected);
    },
    durable,
  ],

  [
    "B3 what an owner had claimed and released in good order is freed without an attempt",
    async (stage) => {
      await stage.write("a1 a2");
      const first = await stage.own();
      await first.read();
      await first.store.release(first.takeoverOf().grant);
      await stage.subject.source.membership.leave(first.id);
      assert.deepEqual(await failuresOf(await stage.own()), [
        ["a1", 0],
        ["a2", 0],
      ]);
    },
    durable,
  ],

  [
    "B5 an event that is reaped for the last time allowed is dead",
    async (stage) => {
      await stage.write("a1");
      for (let attempt = 1; attempt <= 2; attempt++) {
        const owner = await stage.own({ attemptsMax: 2 });
        await owner.read();
        await owner.die();
      }
      const last = await stage.own({ attemptsMax: 2 });
      assert.equal(await last.sees(), "");
      assert.equal(await stage.dead(), "a1");
    },
    durable,
  ],

  [
    "B5 an event claimed by another relay is not shown until its claim is stale, then with an attempt counted",
    async (stage) => {
      await stage.write("a1 b1");
      const owner = await stage.own();
      await stage.subject.claimByStranger!(stage.ids("a1"));
      assert.equal(await owner.sees(), "b1");
      assert.deepEqual(await claimsOf(owner).reapStale(10), { freed: 0, dead: 0 });
      await stage.subject.ageClaims!(stage.ids("a1"));
      assert.deepEqual(await claimsOf(owner).reapStale(10), { freed: 1, dead: 0 });
      assert.deepEqual(await failuresOf(owner), [
        ["a1", 1],
        ["b1", 0],
      ]);
    },
    durable,
  ],

  [
    "B5 a stale claim for the last time allowed is dead",
    async (stage) => {
      await stage.write("a1");
      const owner = await stage.own({ attemptsMax: 1 });
      await stage.subject.claimByStranger!(stage.ids("a1"));
      await stage.subject.ageClaims!(stage.ids("a1"));
      assert.deepEqual(await claimsOf(owner).reapStale(10), { freed: 0, dead: 1 });
      assert.equal(await stage.dead(), "a1");
    },
    durable,
  ],

  [
    "B5 the claim of a living instance is never taken for stale",
    async (stage) => {
      await stage.write("a1");
      const owner = await stage.own();
      await owner.read();
      await stage.subject.ageClaims!(stage.ids("a1"));
      assert.deepEqual(await claimsOf(owner).reapStale(10), { freed: 0, dead: 0 });
      await owner.settle({ delivered: stage.ids("a1") });
      assert.equal(await stage.delivered(), "a1");
    },
    durable,
  ],

  [
    "B5 a claim that was refreshed is not stale",
    async (stage) => {
      await stage.write("a1 b1");
      const owner = await stage.own();
      await owner.read();
      await stage.subject.ageClaims!(stage.ids("a1"));
      await claimsOf(owner).refresh(owner.id, stage.ids("a1 b1"));
      await owner.die();
      assert.deepEqual(await claimsOf(await stage.join()).reapStale(10), { freed: 0, dead: 0 });
    },
    durable,
  ],

  [
    "B5 an old claim that its owner knows nothing of is given back by the refresh of the others",
    async (stage) => {
      await stage.write("a1 b1 c1");
      const owner = await stage.own();
      await owner.read();
      await stage.subject.ageClaims!(stage.ids("a1 b1"));
      await claimsOf(owner).refresh(owner.id, stage.ids("a1"));
      assert.equal(stage.show(await owner.read()), "b1");
    },
    durable,
  ],

  [
    "B5 a head whose claim is the caller's already is claimed all the same",
    async (stage) => {
      await stage.write("a1 b1");
      const owner = await stage.own();
      await owner.read();
      const { events, gone } = await owner.store.claimHeads(owner.takeoverOf().grant, stage.ids("a1"));
      assert.deepEqual([stage.show(events), stage.showIds(gone)], ["a1", ""]);
    },
    durable,
  ],

  [
    "B5 a held event that another relay claimed meanwhile is gone for us",
    async (stage) => {
      await stage.write("a1 b1");
      const owner = await stage.own();
      await owner.read();
      await owner.settle({ failed: [stage.failure("a1", AT_ONCE), stage.failure("b1", AT_ONCE)] });
      await stage.subject.claimByStranger!(stage.ids("a1"));
      const { events, gone } = await owner.store.claimHeads(owner.takeoverOf().grant, stage.ids("a1 b1"));
      assert.deepEqual([stage.show(events), stage.showIds(gone)], ["b1", "a1"]);
    },
    durable,
  ],

  [
    "no more stale claims are freed at once than asked for",
    async (stage) => {
      await stage.write("a1 b1 c1");
      const owner = await stage.own();
      await stage.subject.claimByStranger!(stage.ids("a1 b1 c1"));
      await stage.subject.ageClaims!(stage.ids("a1 b1 c1"));
      assert.equal((await claimsOf(owner).reapStale(2)).freed, 2);
      assert.equal((await claimsOf(owner).reapStale(2)).freed, 1);
    },
    durable,
  ],
]);
