import { test } from "node:test";
import { memorySource } from "../../sources/memory/memory-source.ts";
import type { MemoryEventRow } from "../../sources/memory/memory-tables.ts";
import { applicableCases } from "./contract-case.ts";
import { membershipContract } from "./membership-contract.ts";
import { queueStoreContract } from "./queue-store-contract.ts";
import type { StoreHarness, StoreSubject } from "./store-subject.ts";

for (const durableClaims of [false, true]) {
  const harness = memoryHarness({ durableClaims });
  const adapter = durableClaims ? "memory source with durable claims" : "memory source";
  for (const check of applicableCases([...queueStoreContract, ...membershipContract], harness)) {
    test(`${adapter}: ${check.rule}`, () => check.run(harness));
  }
}

function memoryHarness(options: { durableClaims: boolean }): StoreHarness {
  const { durableClaims } = options;
  return {
    capabilities: {
      durableClaims,
      ownStatus: true,
      payloads: "bytes",
      headers: true,
      prunes: true,
      restart: false,
    },
    open: async () => subjectOf(durableClaims),
  };
}

function subjectOf(durableClaims: boolean): StoreSubject {
  const source = memorySource({ durableClaims });
  const { database } = source;
  const { tables } = database;

  function change(ids: readonly string[], changes: Partial<MemoryEventRow>): void {
    for (const id of ids) tables.put(tables.open, id, { ...tables.open.get(id)!, ...changes });
  }

  function expireAt(id: string, aliveUntilMs: number): void {
    tables.put(tables.instances, id, { ...tables.instances.get(id)!, aliveUntilMs });
  }

  return {
    source,
    store: (spec) => source.pipeline(spec),
    pause: async (pipeline, pause) => database.pause(pipeline, pause),
    insert: async (events) => {
      for (const event of events) source.insert(event);
    },
    insertInOneTransaction: async (statements) => void source.insert(...statements.flat()),
    pendingIds: async () => source.pending().map(({ id }) => id),
    deliveredIds: async () => source.delivered().map(({ id }) => id),
    deadLetters: async () =>
      source.deadLetters().map(({ event, attempts, errors }) => ({
        id: event.id,
        payload: event.payload,
        reason: errors.at(-1)!.reason,
        failures: attempts,
        firstFailedAt: new Date(errors[0]!.atMs),
        lastFailedAt: new Date(errors.at(-1)!.atMs),
        errors: errors.map(({ reason }) => reason),
      })),
    deleteRow: async (id) => void database.delete(id),
    markByHand: async (id) => void database.mark(id),
    resetByHand: async (id) => void source.replay(id),
    expireInstance: async (id) => expireAt(id, database.nowMs() - 1),
    expireImpossiblyFar: async (id) => expireAt(id, database.nowMs() + 10 * 365 * 86_400_000),
    claimByOtherRelay: async (ids) =>
      change(ids, { state: "DELIVERING", lockedBy: "other-relay", lockedAtMs: database.nowMs() }),
    ageClaims: async (ids) => change(ids, { lockedAtMs: database.nowMs() - 2 * database.claimLeaseMs }),
    close: () => source.close(),
  };
}
