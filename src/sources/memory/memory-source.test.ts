import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock } from "../../core/clock.ts";
import { isRelayError } from "../../core/errors.ts";
import { eventBytes } from "../../core/event.ts";
import type { Grant, PipelineSpec, Settlement } from "../../ports/queue-store.ts";
import { type MemorySource, memorySource } from "./memory-source.ts";

const SPEC: PipelineSpec = {
  name: "orders",
  types: null,
  lanes: 1,
  attemptsMax: 2,
  payloadBytesMax: 100,
  headersMax: 2,
};
const BYTES = 1_000_000;

class HandClock implements Clock {
  nowMs = 1_000_000;
  wallMs = () => this.nowMs;
  monotonicMs = () => this.nowMs;
  sleep = async () => {};
}

async function setUp(durableClaims = false) {
  const clock = new HandClock();
  const source = memorySource({ clock, durableClaims, claimLeaseMs: 5_000, commitsKept: 10 });
  const store = source.pipeline(SPEC);
  await store.prepare();
  const grant = await join(source, "a");
  return { clock, source, store, grant };
}

async function join(source: MemorySource, id: string): Promise<Grant> {
  await source.membership.join({ id, name: id, leaseMs: 1_000, pipelines: ["orders"] });
  return (await source.pipeline(SPEC).takeOver(id, [0]))[0]?.grant ?? { lane: 0, owner: id, epoch: -1n };
}

function settlement(grant: Grant, parts: Partial<Settlement>): Settlement {
  const nothing = { delivered: [], failed: [], handedBack: [], releasedHolds: [], suspects: [] };
  return { grant, previousBatch: 0n, batch: 0n, ledger: "none", ...nothing, ...parts };
}

function event(id: string, key: string | null = "k") {
  return { id, type: "order.placed", key, payload: `payload of ${id}` };
}

const isFenced = (error: unknown) => isRelayError(error, "FENCED");
const readAll = { exceptKeys: [], exceptTypes: [] };

describe("memory source", () => {
  it("shows rows in the order of writing, also those that commit late", async () => {
    const { source, store, grant } = await setUp();
    const early = source.database.reserve();
    source.insert(event("2"));
    source.database.insert([event("1")], [early]);
    const run = await store.begin({ grants: [grant], ...readAll });
    assert.deepEqual(
      (await run.next(10, BYTES)).map(({ id }) => id),
      ["1", "2"],
    );
    assert.deepEqual(await run.next(10, BYTES), []);
  });

  it("an id that is there already changes nothing", async () => {
    const { source } = await setUp();
    assert.deepEqual(source.insert(event("1")), ["1"]);
    assert.deepEqual(source.insert({ ...event("1"), payload: "other" }), []);
    assert.equal(source.pending()[0]?.payload.toString(), "payload of 1");
  });

  it("a run shows the snapshot of its begin", async () => {
    const { source, store, grant } = await setUp();
    source.insert(event("1"), event("2"));
    const run = await store.begin({ grants: [grant], ...readAll });
    source.insert(event("3"));
    await store.settle(settlement(grant, { delivered: ["1"], batch: 1n }));
    assert.deepEqual(
      (await run.next(10, BYTES)).map(({ id }) => id),
      ["1", "2"],
    );
    assert.equal(run.lanes[0]?.settledBatch, 0n);
  });

  it("a page ends where its bytes are reached, after one event at least", async () => {
    const { source, store, grant } = await setUp();
    source.insert(event("1"), event("2"), event("3"));
    const run = await store.begin({ grants: [grant], ...readAll });
    const [first, ...others] = await run.next(10, 1);
    assert.deepEqual(others, []);
    assert.equal((await run.next(10, eventBytes(first!) + 1)).length, 2);
  });

  it("a type that is left out takes its keys along", async () => {
    const { source, store, grant } = await setUp();
    source.insert(event("1", "a"), { ...event("2", "a"), type: "closed" }, event("3", "b"));
    const run = await store.begin({ grants: [grant], exceptKeys: [], exceptTypes: ["closed"] });
    assert.deepEqual(
      (await run.next(10, BYTES)).map(({ id }) => id),
      ["3"],
    );
  });

  it("a hold parks its key and is claimed again when due", async () => {
    const { clock, source, store, grant } = await setUp();
    source.insert(event("1"), event("2"), event("3", null));
    const next = { kind: "retry", delayMs: 50 } as const;
    await store.settle(settlement(grant, { failed: [{ id: "1", key: "k", reason: "no", attempts: 1, next }] }));
    const run = await store.begin({ grants: [grant], ...readAll });
    assert.deepEqual(
      (await run.next(10, BYTES)).map(({ id }) => id),
      ["3"],
    );
    assert.deepEqual(await store.claimHeads(grant, ["1"]), { events: [], gone: [] });
    clock.nowMs += 50;
    assert.equal((await store.claimHeads(grant, ["1"])).events[0]?.failures, 1);
  });

  it("a dead letter has the error of every attempt, and a replay revives its hold", async () => {
    const { source, store, grant } = await setUp();
    source.insert(event("1"));
    const retried = { id: "1", key: "k", reason: "first", attempts: 1, next: { kind: "retry", delayMs: 0 } } as const;
    await store.settle(settlement(grant, { failed: [retried] }));
    const dead = { ...retried, reason: "second", attempts: 2, next: { kind: "dead", parks: true } } as const;
    await store.settle(settlement(grant, { failed: [dead] }));
    assert.deepEqual(
      source.deadLetters()[0]?.errors.map(({ reason }) => reason),
      ["first", "second"],
    );
    assert.equal((await store.reviewHolds(grant))[0]?.state, "dead");
    source.replay("1");
    assert.deepEqual(source.deadLetters(), []);
    assert.equal((await store.reviewHolds(grant))[0]?.state, "retrying");
  });

  it("a late settle changes nothing", async () => {
    const { clock, source, store, grant } = await setUp();
    source.insert(event("1"));
    clock.nowMs += 1_000;
    assert.deepEqual(await source.membership.reap(), ["a"]);
    const newer = await join(source, "b");
    assert.ok(newer.epoch > grant.epoch);
    await assert.rejects(store.settle(settlement(grant, { delivered: ["1"], batch: 1n })), isFenced);
    assert.equal(source.pending().length, 1);
  });

  it("a settle out of sequence changes nothing", async () => {
    const { source, store, grant } = await setUp();
    source.insert(event("1"));
    const wrong = settlement(grant, { delivered: ["1"], previousBatch: 4n, batch: 5n });
    await assert.rejects(store.settle(wrong), isFenced);
    assert.equal(source.pending().length, 1);
  });

  it("a lane is not taken from a living owner, and a crash is counted only without a release", async () => {
    const { source, store, grant, clock } = await setUp();
    await source.membership.join({ id: "b", name: "b", leaseMs: 5_000, pipelines: ["orders"] });
    assert.deepEqual(await store.takeOver("b", [0]), []);
    await store.release(grant);
    const [taken] = await store.takeOver("b", [0]);
    assert.equal(taken?.crashes, 0);
    clock.nowMs += 5_000;
    await source.membership.join({ id: "c", name: "c", leaseMs: 5_000, pipelines: ["orders"] });
    assert.equal((await store.takeOver("c", [0]))[0]?.crashes, 1);
  });

  it("an epoch is never given out twice, even after lost commits", async () => {
    const { clock, source, store, grant } = await setUp();
    const [second] = await store.takeOver("a", [0]);
    source.database.tables.forget(1);
    clock.nowMs += 10;
    const [third] = await store.takeOver("a", [0]);
    assert.ok(grant.epoch < second!.grant.epoch && second!.grant.epoch < third!.grant.epoch);
  });

  it("reports what is missing when a row was deleted in flight", async () => {
    const { source, store, grant } = await setUp();
    source.insert(event("1"), event("2"));
    source.database.delete("1");
    const { missing } = await store.settle(settlement(grant, { delivered: ["1", "2"], batch: 1n }));
    assert.deepEqual(missing, ["1"]);
  });

  it("shows a row that is no proper event with its fault", async () => {
    const { source, store, grant } = await setUp();
    source.insert({ ...event("1"), payload: "x".repeat(101) }, { ...event("2"), unreadable: "no JSON" });
    const page = await (await store.begin({ grants: [grant], ...readAll })).next(10, BYTES);
    assert.deepEqual(
      page.map(({ fault }) => fault?.code),
      ["EVENT_TOO_LARGE", "EVENT_UNREADABLE"],
    );
  });
});

describe("memory source with durable claims", () => {
  it("locks what it shows and unlocks what is handed back", async () => {
    const { source, store, grant } = await setUp(true);
    source.insert(event("1"));
    await (await store.begin({ grants: [grant], ...readAll })).next(10, BYTES);
    assert.deepEqual([source.pending()[0]?.state, source.pending()[0]?.lockedBy], ["DELIVERING", "a"]);
    await store.settle(settlement(grant, { handedBack: ["1"] }));
    assert.deepEqual([source.pending()[0]?.state, source.pending()[0]?.lockedBy], ["PENDING", null]);
    assert.equal(source.pending()[0]?.attempts, 0);
  });

  it("counts an attempt when the owner died after it had sent the event, and the last attempt of another relay makes it dead", async () => {
    const { clock, source, store, grant } = await setUp(true);
    source.insert(event("1"));
    await (await store.begin({ grants: [grant], ...readAll })).next(10, BYTES);
    await store.settle(settlement(grant, { sending: ["1"] }));
    clock.nowMs += 1_000;
    const second = await join(source, "b");
    assert.equal(source.pending()[0]?.attempts, 1);
    await (await store.begin({ grants: [second], ...readAll })).next(10, BYTES);
    const [row] = source.database.tables.open.values();
    source.database.tables.open.set("1", { ...row!, lockedBy: "stranger" });
    clock.nowMs += 6_000;
    assert.deepEqual(await store.durableClaims?.reapStale(10), { freed: 0, dead: 1 });
    assert.equal(source.deadLetters()[0]?.attempts, 2);
  });

  it("a refreshed claim is not stale", async () => {
    const { clock, source, store, grant } = await setUp(true);
    source.insert(event("1"));
    await (await store.begin({ grants: [grant], ...readAll })).next(10, BYTES);
    clock.nowMs += 4_000;
    await store.durableClaims?.refresh("a", ["1"]);
    clock.nowMs += 4_000;
    assert.deepEqual(await store.durableClaims?.reapStale(10), { freed: 0, dead: 0 });
  });
});
