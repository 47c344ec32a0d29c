import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { ContractCase } from "./contract-case.ts";
import { type Stage, storeCases } from "./store-stage.ts";
import type { StoreHarness } from "./store-subject.ts";

const LEASE_MS = 60_000;

async function join(stage: Stage): Promise<string> {
  const id = randomUUID();
  await stage.subject.source.membership.join({ id, name: "contract", leaseMs: LEASE_MS, pipelines: ["contract"] });
  return id;
}

/** Rules of instance membership. Runs on the same harness as the store's contract. */
export const membershipContract: readonly ContractCase<StoreHarness>[] = storeCases([
  [
    "an instance that joined is alive and can renew",
    async (stage) => {
      const { membership } = stage.subject.source;
      const id = await join(stage);
      assert.equal(await membership.renew(id, LEASE_MS), true);
      assert.equal(await membership.renew(id, LEASE_MS), true);
      assert.deepEqual(await membership.reap(), []);
    },
  ],

  [
    "an instance that never joined cannot renew",
    async (stage) => {
      assert.equal(await stage.subject.source.membership.renew(randomUUID(), LEASE_MS), false);
    },
  ],

  [
    "B4 an expired instance cannot renew, even if it is not reaped yet",
    async (stage) => {
      const id = await join(stage);
      await stage.subject.expireInstance(id);
      assert.equal(await stage.subject.source.membership.renew(id, LEASE_MS), false);
    },
  ],

  [
    "B4 a reaped instance never comes back under its id",
    async (stage) => {
      const { membership } = stage.subject.source;
      const id = await join(stage);
      await stage.subject.expireInstance(id);
      assert.deepEqual(await membership.reap(), [id]);
      assert.equal(await membership.renew(id, LEASE_MS), false);
    },
  ],

  [
    "reap removes expired instances and keeps living ones",
    async (stage) => {
      const { membership } = stage.subject.source;
      const [living, first, second] = [await join(stage), await join(stage), await join(stage)];
      await stage.subject.expireInstance(first);
      await stage.subject.expireInstance(second);
      assert.deepEqual((await membership.reap()).sort(), [first, second].sort());
      assert.equal(await membership.renew(living, LEASE_MS), true);
      assert.deepEqual(await membership.reap(), []);
    },
  ],

  [
    "of several concurrent reaps exactly one returns an id",
    async (stage) => {
      const { membership } = stage.subject.source;
      const dead = await Promise.all(Array.from({ length: 8 }, () => join(stage)));
      for (const id of dead) await stage.subject.expireInstance(id);
      const reaped = await Promise.all(Array.from({ length: 5 }, () => membership.reap()));
      assert.deepEqual(reaped.flat().sort(), dead.sort());
    },
  ],

  [
    "an instance whose expiry is impossibly far away is reaped",
    async (stage) => {
      const id = await join(stage);
      await stage.subject.expireImpossiblyFar(id);
      assert.deepEqual(await stage.subject.source.membership.reap(), [id]);
    },
  ],

  [
    "of a concurrent renewal and reap only one succeeds",
    async (stage) => {
      const { membership } = stage.subject.source;
      for (let round = 0; round < 10; round++) {
        const id = await join(stage);
        await stage.subject.expireInstance(id);
        const [renewed, reaped] = await Promise.all([membership.renew(id, LEASE_MS), membership.reap()]);
        assert.deepEqual([renewed, reaped], [false, [id]]);
      }
    },
  ],

  [
    "leaving ends the membership at once, and leaving twice is allowed",
    async (stage) => {
      const { membership } = stage.subject.source;
      const id = await join(stage);
      await membership.leave(id);
      await membership.leave(id);
      assert.equal(await membership.renew(id, LEASE_MS), false);
      assert.deepEqual(await membership.reap(), []);
    },
  ],
]);
