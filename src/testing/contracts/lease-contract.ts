import assert from "node:assert/strict";
import { isRelayError } from "../../core/errors.ts";
import type { ContractCase } from "./contract-case.ts";
import { Stage } from "./store-stage.ts";
import type { StoreHarness } from "./store-subject.ts";

/** The handle of an owner while it may write. */
interface HeldLease {
  /** Performs an operation that only the holder may perform. Returns whether it took effect. */
  write(): Promise<boolean>;
  release(): Promise<void>;
}

/** A resource with one owner at a time, which loses it after its lease has expired. */
export interface LeaseSubject {
  /** Takes the lease for a new owner at each call, as another process would; null while another owner has it. */
  take(): Promise<HeldLease | null>;
  /** Makes the lease of the current owner expire. */
  expire(): Promise<void>;
  close(): Promise<void>;
}

interface LeaseHarness {
  readonly capabilities: unknown;
  open(): Promise<LeaseSubject>;
}

type LeaseRule = readonly [rule: string, prove: (subject: LeaseSubject) => Promise<void>];

const RULES: readonly LeaseRule[] = [
  [
    "who may write: one owner, as long as it has the lease",
    async (subject) => {
      const holder = await taken(subject);
      assert.equal(await holder.write(), true);
      assert.equal(await subject.take(), null);
      assert.equal(await holder.write(), true);
    },
  ],
  [
    "who may write: exactly one of several concurrent takers",
    async (subject) => {
      const asked = await Promise.all(Array.from({ length: 5 }, () => subject.take()));
      const holders = asked.filter((it) => it !== null);
      assert.equal(holders.length, 1);
      assert.equal(await holders[0]!.write(), true);
    },
  ],
  [
    "who may write: the next owner as soon as the holder releases; the former holder no longer",
    async (subject) => {
      const former = await taken(subject);
      await former.release();
      const next = await taken(subject);
      assert.equal(await former.write(), false);
      assert.equal(await next.write(), true);
    },
  ],
  [
    "who may write: the successor of an expired holder, however late that holder wakes up",
    async (subject) => {
      const former = await taken(subject);
      await subject.expire();
      const next = await taken(subject);
      assert.equal(await former.write(), false);
      assert.equal(await next.write(), true);
    },
  ],
  [
    "who may write: a release by a former holder takes nothing from its successor",
    async (subject) => {
      const former = await taken(subject);
      await subject.expire();
      const next = await taken(subject);
      await former.release();
      assert.equal(await subject.take(), null);
      assert.equal(await next.write(), true);
    },
  ],
];

/** The rules about who may write, for every kind of lease. */
export const leaseContract: readonly ContractCase<LeaseHarness>[] = RULES.map(([rule, prove]) => ({
  rule,
  async run(harness) {
    const subject = await harness.open();
    try {
      await prove(subject);
    } finally {
      await subject.close();
    }
  },
}));

/** The same rules for the lanes of a store and the membership of its instances. */
export const laneLeaseCases: readonly ContractCase<StoreHarness>[] = leaseContract.map(({ rule, run }) => ({
  rule,
  run: (harness) => run({ capabilities: null, open: async () => laneLease(new Stage(await harness.open())) }),
}));

async function taken(subject: LeaseSubject): Promise<HeldLease> {
  return (await subject.take()) ?? assert.fail("the lease is free but could not be taken");
}

function laneLease(stage: Stage): LeaseSubject {
  const { membership } = stage.subject.source;
  let ownerId = "";
  return {
    async take() {
      const { id, store } = await stage.join();
      const [takeover] = await store.takeOver(id, [0]);
      if (takeover === undefined) return null;
      ownerId = id;
      const { grant, settledBatch } = takeover;
      const lists = { delivered: [], failed: [], handedBack: [], releasedHolds: [], suspects: [] };
      const nothing = { grant, previousBatch: settledBatch, batch: settledBatch, ledger: "none", ...lists } as const;
      return { write: () => isAllowed(store.settle(nothing)), release: () => store.release(grant) };
    },
    async expire() {
      await stage.subject.expireInstance(ownerId);
      await membership.reap();
    },
    close: () => stage.subject.close(),
  };
}

/** False if the write is refused because the lease is lost. */
export async function isAllowed(write: Promise<unknown>): Promise<boolean> {
  try {
    await write;
    return true;
  } catch (error) {
    if (isRelayError(error, "FENCED")) return false;
    throw error;
  }
}
