import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Settlement } from "../../ports/queue-store.ts";
import { until } from "./contract-case.ts";
import {
  AT_ONCE,
  assertFenced,
  DEAD_PARKED,
  LATER,
  type Owner,
  type Stage,
  type StoreRule,
  storeCases,
} from "./store-stage.ts";

/** A settlement with an entry in every part, so that a part written by mistake shows. */
async function everything(stage: Stage): Promise<{ owner: Owner; parts: Parameters<Owner["settle"]>[0] }> {
  await stage.write("a1 b1 c1 d1 e1 f1");
  const owner = await stage.own();
  await owner.read();
  await owner.settle({ failed: [stage.failure("f1", AT_ONCE)] });
  return {
    owner,
    parts: {
      delivered: stage.ids("a1"),
      failed: [stage.failure("b1", AT_ONCE), stage.failure("c1", DEAD_PARKED)],
      handedBack: stage.ids("d1"),
      releasedHolds: stage.ids("f1"),
      suspects: [{ id: stage.id("e1"), key: "e" }],
    },
  };
}

async function assertUntouched(stage: Stage, owner: Owner): Promise<void> {
  assert.equal(await stage.delivered(), "");
  assert.equal(await stage.dead(), "");
  assert.equal((await owner.store.survey()).lanes[0]?.settledBatch, 0n);
  const holds = await owner.store.reviewHolds(owner.takeoverOf().grant);
  assert.deepEqual(
    holds.map(({ id, state }) => [stage.showIds([id]), state]),
    [["f1", "retrying"]],
  );
}

const FORGERIES: readonly (readonly [what: string, forge: (settlement: Settlement) => Settlement])[] = [
  ["with another epoch", (it) => ({ ...it, grant: { ...it.grant, epoch: it.grant.epoch - 1n } })],
  ["with a future epoch", (it) => ({ ...it, grant: { ...it.grant, epoch: it.grant.epoch + 1n } })],
  ["of another owner", (it) => ({ ...it, grant: { ...it.grant, owner: randomUUID() } })],
  ["with another previous batch", (it) => ({ ...it, previousBatch: 5n, batch: 6n })],
];

/** How outcomes of claimed events are settled. */
export const settlingCases = storeCases([
  [
    "D4 a settle marks exactly the delivered events and raises the lane's batch",
    async (stage) => {
      await stage.write("a1 b1 a2 b2 -1");
      const owner = await stage.own();
      await owner.read();
      const result = await owner.settle({ delivered: stage.ids("a1 -1") });
      assert.deepEqual(result.missing, []);
      assert.equal(await stage.delivered(), "-1 a1");
      assert.equal(await stage.pending(), "a2 b1 b2");
      assert.equal((await owner.store.survey()).lanes[0]?.settledBatch, 1n);
    },
  ],

  [
    "a settle writes all of its parts",
    async (stage) => {
      const { owner, parts } = await everything(stage);
      await owner.settle(parts);
      assert.deepEqual([await stage.delivered(), await stage.dead()], ["a1", "c1"]);
      const holds = await owner.store.reviewHolds(owner.takeoverOf().grant);
      assert.deepEqual(Object.fromEntries(holds.map((hold) => [stage.showIds([hold.id]), hold.state])), {
        b1: "retrying",
        c1: "dead",
        e1: "suspect",
      });
      assert.equal(await owner.sees(), "d1 f1");
    },
  ],

  ...FORGERIES.map(
    ([what, forge]): StoreRule => [
      `B4 a settle ${what} is fenced and writes none of its parts`,
      async (stage) => {
        const { owner, parts } = await everything(stage);
        await assertFenced(owner.store.settle(forge(owner.settlement(parts))));
        await assertUntouched(stage, owner);
      },
    ],
  ),

  [
    "B4 a late settle under an old epoch changes nothing, even if its owner took the lane again",
    async (stage) => {
      const { owner, parts } = await everything(stage);
      const late = owner.settlement(parts);
      await owner.takeOver();
      await assertFenced(owner.store.settle(late));
      await assertUntouched(stage, owner);
    },
  ],

  [
    "B4 a slow instance's late settle cannot overwrite its successor's",
    async (stage) => {
      const { owner, parts } = await everything(stage);
      await owner.die();
      const successor = await stage.own();
      await assertFenced(owner.settle(parts));
      await assertUntouched(stage, successor);
    },
  ],

  [
    "a repeated settle is fenced by its batch",
    async (stage) => {
      await stage.write("a1 a2");
      const owner = await stage.own();
      await owner.read();
      const settlement = owner.settlement({ delivered: stage.ids("a1") });
      await owner.store.settle(settlement);
      await assertFenced(owner.store.settle(settlement));
      assert.equal((await owner.store.survey()).lanes[0]?.settledBatch, 1n);
    },
  ],

  [
    "a settle may join several batches",
    async (stage) => {
      await stage.write("a1 b1");
      const owner = await stage.own();
      await owner.read();
      await owner.settle({ delivered: stage.ids("a1 b1"), batch: 7n });
      await owner.die();
      assert.equal((await stage.own()).takeoverOf().settledBatch, 7n);
    },
  ],

  [
    "of a concurrent settle and take-over, either the settle takes effect or all of it is fenced",
    async (stage) => {
      for (let round = 0; round < 5; round++) {
        const name = `a${round}`;
        await stage.write(name);
        const owner = await stage.own();
        await owner.read();
        const successor = await stage.join();
        await owner.die();
        const [settled] = await Promise.allSettled([
          owner.settle({ delivered: stage.ids(name) }),
          successor.takeOver(),
        ]);
        const isDelivered = (await stage.subject.deliveredIds()).includes(stage.id(name));
        assert.equal(isDelivered, settled.status === "fulfilled");
        assert.equal(
          (await successor.takeOver())[0]?.settledBatch,
          BigInt((await stage.subject.deliveredIds()).length),
        );
        if (!isDelivered) {
          await successor.read();
          await successor.settle({ delivered: stage.ids(name) });
        }
        await successor.die();
      }
    },
  ],

  [
    "a row that was deleted or marked while in flight is reported missing, the others are settled",
    async (stage) => {
      await stage.write("a1 b1 c1");
      const owner = await stage.own();
      await owner.read();
      await stage.subject.deleteRow(stage.id("a1"));
      await stage.subject.markByHand(stage.id("b1"));
      const { missing } = await owner.settle({ delivered: stage.ids("a1 b1 c1") });
      assert.equal(stage.showIds(missing), "a1 b1");
      assert.equal(await stage.delivered(), "b1 c1");
    },
    ({ isLog = false }) => !isLog,
  ],

  [
    "an empty settle is allowed and keeps the batch",
    async (stage) => {
      const owner = await stage.own();
      assert.deepEqual((await owner.settle({})).missing, []);
      assert.equal((await owner.store.survey()).lanes[0]?.settledBatch, 0n);
    },
  ],

  [
    "after a restart of the server ownership, progress and holds are as before",
    async (stage) => {
      await stage.write("a1 a2 b1");
      const owner = await stage.own();
      await owner.read();
      await owner.settle({ delivered: stage.ids("a1"), failed: [stage.failure("b1", LATER)] });
      const before = (await owner.store.survey()).lanes;
      await stage.subject.restart!();
      await until("the store answers", () =>
        owner.store.survey().then(
          () => true,
          () => false,
        ),
      );
      assert.deepEqual((await owner.store.survey()).lanes, before);
      await owner.settle({ delivered: stage.ids("a2") });
      assert.equal(await stage.delivered(), "a1 a2");
      assert.equal((await owner.store.reviewHolds(owner.takeoverOf().grant)).length, 1);
    },
    ({ restart }) => restart,
  ],
]);
