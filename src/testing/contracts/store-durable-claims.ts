import assert from "node:assert/strict";
import type { DurableClaims } from "../../ports/queue-store.ts";
import { AT_ONCE, BYTES_MAX, type Owner, storeCases } from "./store-stage.ts";
import type { StoreCapabilities } from "./store-subject.ts";

const durable = ({ durableClaims }: StoreCapabilities) => durableClaims;

function claimsOf(owner: Owner): DurableClaims {
  return owner.store.durableClaims ?? assert.fail("the harness declares durable claims, but the store has none");
}

async function failuresOf(owner: Owner): Promise<[string, number][]> {
  const events = await owner.read();
  return events.map((event): [string, number] => [owner.stage.showIds([event.id]), event.failures]).sort();
}

/** Claims that are written into the row, next to other relays on the same table. */
export const durableClaimCases = storeCases([
  [
    "a store without durable claims has none",
    async (stage) => {
      assert.equal((await stage.join()).store.durableClaims, null);
    },
    ({ durableClaims }) => !durableClaims,
  ],

  [
    "B3 a second run does not return claimed events; it returns handed-back ones, without an attempt counted",
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
    "B5 H1 claims of a dead owner are freed at take-over, with one attempt counted for events that it had sent",
    async (stage) => {
      await stage.write("a1 a2 b1 c1");
      const first = await stage.own();
      await first.read();
      await first.settle({ sending: stage.ids("c1") });
      await first.settle({ delivered: stage.ids("c1"), sending: stage.ids("a1 b1") });
      await first.settle({ handedBack: stage.ids("a2") });
      await first.die();
      const expected = [
        ["a1", 1],
        ["a2", 0],
        ["b1", 1],
      ];
      const second = await stage.own();
      assert.deepEqual(await failuresOf(second), expected);
      // The events that it had sent do not count as sent by the next owner.
      await second.die();
      assert.deepEqual(await failuresOf(await stage.own()), expected);
    },
    durable,
  ],

  [
    "H1 the loss of a claim is never the last attempt",
    async (stage) => {
      await stage.write("a1");
      for (let attempt = 1; attempt <= 4; attempt++) {
        const owner = await stage.own({ attemptsMax: 3 });
        await owner.read();
        await owner.settle({ sending: stage.ids("a1") });
        await owner.die();
      }
      assert.deepEqual(await failuresOf(await stage.own({ attemptsMax: 3 })), [["a1", 2]]);
      assert.equal(await stage.dead(), "");
    },
    durable,
  ],

  [
    "H1 no more events of a lane are claimed than it has room for",
    async (stage) => {
      await stage.write("a1 a2 a3 b1 b2 b3 c1 c2 c3 d1 d2 d3");
      const owner = await stage.own({ lanes: 2 });
      const rooms = new Map([
        [0, 2],
        [1, 1],
      ]);
      const claimed = await owner.inRun(async (run) => await run.next(100, BYTES_MAX, rooms));
      assert.deepEqual(
        [claimed.filter(({ lane }) => lane === 0).length, claimed.filter(({ lane }) => lane === 1).length],
        [2, 1],
      );
      const rest = await owner.inRun(async (run) => await run.next(100, BYTES_MAX, new Map([[1, 100]])));
      assert.ok(rest.length > 0 && rest.every(({ lane }) => lane === 1));
      await owner.handBack([...claimed, ...rest]);
      assert.equal(await owner.sees(), "a1 a2 a3 b1 b2 b3 c1 c2 c3 d1 d2 d3");
    },
    durable,
  ],

  [
    "B3 claims that an owner released gracefully are freed without an attempt",
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
    "B5 an event claimed by another relay is not returned until its claim is stale, then with an attempt counted",
    async (stage) => {
      await stage.write("a1 b1");
      const owner = await stage.own();
      await stage.subject.claimByOtherRelay!(stage.ids("a1"));
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
    "B5 an event whose last allowed claim is stale is dead",
    async (stage) => {
      await stage.write("a1");
      const owner = await stage.own({ attemptsMax: 1 });
      await stage.subject.claimByOtherRelay!(stage.ids("a1"));
      await stage.subject.ageClaims!(stage.ids("a1"));
      assert.deepEqual(await claimsOf(owner).reapStale(10), { freed: 0, dead: 1 });
      assert.equal(await stage.dead(), "a1");
    },
    durable,
  ],

  [
    "B5 the claim of a living instance is never stale",
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
    "B5 a refresh frees old claims of its owner that it does not name",
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
    "H1 freed events return in the order of their claims, even if only some claims were refreshed",
    async (stage) => {
      await stage.subject.insertInOneTransaction([stage.events("a1 a2 a3 a4 a5 a6")]);
      const first = await stage.own();
      await first.inRun(async (run) => {
        await run.next(3, BYTES_MAX);
        await stage.subject.ageClaims!(stage.ids("a1 a2 a3"));
        await run.next(3, BYTES_MAX);
      });
      await claimsOf(first).refresh(first.id, stage.ids("a1 a2 a3 a4 a5 a6"));
      await first.die();
      assert.equal(stage.show(await (await stage.own()).read()), "a1 a2 a3 a4 a5 a6");
    },
    durable,
  ],

  [
    "B5 a head that the caller has already claimed can be claimed again",
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
    "B5 a held event that another relay claimed meanwhile is reported as gone",
    async (stage) => {
      await stage.write("a1 b1");
      const owner = await stage.own();
      await owner.read();
      await owner.settle({ failed: [stage.failure("a1", AT_ONCE), stage.failure("b1", AT_ONCE)] });
      await stage.subject.claimByOtherRelay!(stage.ids("a1"));
      const { events, gone } = await owner.store.claimHeads(owner.takeoverOf().grant, stage.ids("a1 b1"));
      assert.deepEqual([stage.show(events), stage.showIds(gone)], ["b1", "a1"]);
    },
    durable,
  ],

  [
    "no more stale claims are freed at once than requested",
    async (stage) => {
      await stage.write("a1 b1 c1");
      const owner = await stage.own();
      await stage.subject.claimByOtherRelay!(stage.ids("a1 b1 c1"));
      await stage.subject.ageClaims!(stage.ids("a1 b1 c1"));
      assert.equal((await claimsOf(owner).reapStale(2)).freed, 2);
      assert.equal((await claimsOf(owner).reapStale(2)).freed, 1);
    },
    durable,
  ],
]);
