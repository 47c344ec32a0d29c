import assert from "node:assert/strict";
import { SPEC, storeCases } from "./store-stage.ts";

const LANES = { lanes: 4 };

/** Ownership of lanes and its changes. */
export const laneCases = storeCases([
  [
    "prepare can be repeated and run concurrently, and the number of lanes in the database wins",
    async (stage) => {
      const prepared = await Promise.all([1, 2, 3].map(() => stage.subject.store({ ...SPEC, ...LANES }).prepare()));
      assert.deepEqual(prepared, [LANES, LANES, LANES]);
      assert.deepEqual(await stage.subject.store({ ...SPEC, lanes: 7 }).prepare(), LANES);
    },
  ],

  [
    "a new lane has no owner, and the survey names only living instances of the pipeline",
    async (stage) => {
      const mine = await stage.join(LANES);
      const dead = await stage.join(LANES);
      await stage.subject.expireInstance(dead.id);
      await stage.join({ name: "another" });
      const survey = await mine.store.survey();
      assert.deepEqual(survey.instances, [mine.id]);
      assert.deepEqual(
        survey.lanes.map(({ lane, owner }) => [lane, owner]).sort(),
        [0, 1, 2, 3].map((lane) => [lane, null]),
      );
    },
  ],

  [
    "A17 every instance sees a pause with its author and reason; it affects no other pipeline, and ends",
    async (stage) => {
      const [first, second, other] = [
        await stage.own(LANES),
        await stage.join(LANES),
        await stage.join({ name: "another" }),
      ];
      assert.equal((await first.store.survey()).pause, null);
      for (const handsOver of [false, true]) {
        const pause = { by: "mia", reason: "a deploy", handsOver };
        await stage.subject.pause(SPEC.name, pause);
        for (const { store } of [first, second]) assert.deepEqual((await store.survey()).pause, pause);
        assert.equal((await first.store.survey()).lanes.filter(({ owner }) => owner === first.id).length, 4);
        assert.equal((await other.store.survey()).pause, null);
        await stage.subject.pause(SPEC.name, null);
        assert.equal((await second.store.survey()).pause, null);
      }
    },
  ],

  [
    "lanes split all keys: every event belongs to exactly one lane, all events of a key to the same",
    async (stage) => {
      const keys = Array.from(
        { length: 40 },
        (_, index) => `key${String.fromCharCode(97 + (index % 26))}${"x".repeat(index / 26)}`,
      );
      const names = [...keys.map((key) => `${key}1`), ...keys.map((key) => `${key}2`), "-1", "-2", "-3", "-4", "-5"];
      await stage.subject.insertInOneTransaction([stage.events(names.join(" "))]);
      const owner = await stage.own(LANES);
      const laneOfKey = new Map<string | null, number>();
      const seen: string[] = [];
      for (const grant of owner.grants) {
        for (const event of await owner.read({ grants: [grant], rows: 50 })) {
          assert.equal(event.lane, grant.lane);
          if (event.key !== null) assert.equal(laneOfKey.get(event.key) ?? grant.lane, grant.lane, `key ${event.key}`);
          laneOfKey.set(event.key, grant.lane);
          seen.push(event.id);
        }
      }
      assert.equal(stage.showIds(seen), [...names].sort().join(" "));
      assert.ok(new Set(laneOfKey.values()).size > 1, "more than one lane has keys");
    },
  ],

  [
    "a lane without an owner is taken with an epoch and without a crash",
    async (stage) => {
      const owner = await stage.own(LANES);
      assert.equal(owner.grants.length, 4);
      for (const { grant, crashes, holds, settledBatch } of owner.takeovers.values()) {
        assert.ok(grant.owner === owner.id && grant.epoch > 0n);
        assert.deepEqual([crashes, holds, settledBatch], [0, [], 0n]);
      }
      for (const lane of (await owner.store.survey()).lanes) {
        assert.deepEqual([lane.owner, lane.epoch], [owner.id, owner.takeoverOf(lane.lane).grant.epoch]);
      }
    },
  ],

  [
    "only the requested lanes are taken",
    async (stage) => {
      const owner = await stage.join(LANES);
      const taken = await owner.takeOver([1, 3]);
      assert.deepEqual(taken.map(({ grant }) => grant.lane).sort(), [1, 3]);
      assert.equal((await owner.store.survey()).lanes.filter((lane) => lane.owner === null).length, 2);
    },
  ],

  [
    "B4 a living owner's lane cannot be taken",
    async (stage) => {
      const owner = await stage.own();
      const other = await stage.own();
      assert.deepEqual(other.grants, []);
      assert.equal((await other.store.survey()).lanes[0]?.owner, owner.id);
    },
  ],

  [
    "B4 a dead owner's lane is taken with a higher epoch and one more crash",
    async (stage) => {
      const first = await stage.own();
      await first.die();
      const second = await stage.own();
      assert.ok(second.takeoverOf().grant.epoch > first.takeoverOf().grant.epoch);
      assert.equal(second.takeoverOf().crashes, 1);
      await second.die();
      assert.equal((await stage.own()).takeoverOf().crashes, 2);
    },
  ],

  [
    "a lane whose owner left without releasing it is free",
    async (stage) => {
      const first = await stage.own();
      await stage.subject.source.membership.leave(first.id);
      const second = await stage.own();
      assert.ok(second.takeoverOf().grant.epoch > first.takeoverOf().grant.epoch);
    },
  ],

  [
    "after a graceful release the next owner counts no crash",
    async (stage) => {
      const first = await stage.own();
      await first.store.release(first.takeoverOf().grant);
      assert.equal((await first.store.survey()).lanes[0]?.owner, null);
      const second = await stage.own();
      assert.equal(second.takeoverOf().crashes, 0);
      assert.ok(second.takeoverOf().grant.epoch > first.takeoverOf().grant.epoch);
    },
  ],

  [
    "crashes fall with every settle",
    async (stage) => {
      await stage.write("a1 a2");
      for (let crash = 0; crash < 2; crash++) await (await stage.own()).die();
      const owner = await stage.own();
      assert.equal(owner.takeoverOf().crashes, 2);
      await owner.read();
      await owner.settle({ delivered: stage.ids("a1") });
      await owner.settle({ delivered: stage.ids("a2") });
      await owner.die();
      assert.ok((await stage.own()).takeoverOf().crashes < 3);
    },
  ],

  [
    "B4 a release under an old grant changes nothing and is no error",
    async (stage) => {
      const first = await stage.own();
      await first.die();
      const second = await stage.own();
      await first.store.release(first.takeoverOf().grant);
      const lane = (await second.store.survey()).lanes[0];
      assert.deepEqual([lane?.owner, lane?.epoch], [second.id, second.takeoverOf().grant.epoch]);
    },
  ],

  [
    "taking over one's own lane raises the epoch",
    async (stage) => {
      const owner = await stage.own();
      const before = owner.takeoverOf().grant.epoch;
      await owner.takeOver();
      assert.ok(owner.takeoverOf().grant.epoch > before);
    },
  ],

  [
    "B4 of several concurrent take-overs exactly one wins each lane",
    async (stage) => {
      const owners = await Promise.all(Array.from({ length: 5 }, () => stage.join(LANES)));
      await Promise.all(owners.map((owner) => owner.takeOver()));
      const lanes = owners.flatMap((owner) => owner.grants.map((grant) => grant.lane));
      assert.deepEqual(lanes.sort(), [0, 1, 2, 3]);
    },
  ],

  [
    "B4 of several concurrent take-overs of a dead owner's lanes exactly one wins each",
    async (stage) => {
      const dead = await stage.own(LANES);
      const owners = await Promise.all(Array.from({ length: 5 }, () => stage.join(LANES)));
      await dead.die();
      await Promise.all(owners.map((owner) => owner.takeOver()));
      assert.deepEqual(owners.flatMap((owner) => owner.grants.map((grant) => grant.lane)).sort(), [0, 1, 2, 3]);
    },
  ],

  [
    "epochs rise strictly, however a lane changes its owner",
    async (stage) => {
      let last = 0n;
      const rises = (epoch: bigint) => {
        assert.ok(epoch > last, `${epoch} after ${last}`);
        last = epoch;
      };
      for (let round = 0; round < 3; round++) {
        const owner = await stage.own();
        rises(owner.takeoverOf().grant.epoch);
        await owner.takeOver();
        rises(owner.takeoverOf().grant.epoch);
        if (round === 1) await owner.store.release(owner.takeoverOf().grant);
        await owner.die();
      }
    },
  ],
]);
