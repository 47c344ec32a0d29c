import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises"; // why: one case is about a run that takes its time
import { until } from "../../test/servers/until.ts";
import type { QueueSource, QueueStore, RunRequest } from "../ports/queue-store.ts";
import { memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { createRelay } from "./relay.ts";

const LEASE = { leaseMs: 2_000, leaseMarginMs: 400, publishTimeoutMs: 1_000 };

/** The memory source with some of its stores' methods replaced. */
function altered(methods: (store: QueueStore) => Partial<QueueStore>) {
  const source = memorySource();
  const alteredSource: QueueSource = {
    name: source.name,
    membership: source.membership,
    close: () => source.close(),
    pipeline: (spec) => {
      const store = source.pipeline(spec);
      const own = methods(store) as Record<PropertyKey, unknown>;
      return new Proxy(store, {
        get(target, name) {
          const value = own[name] ?? Reflect.get(target, name, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    },
  };
  return { source, alteredSource };
}

test("D9 a store that can be watched wakes its reader at once, and only while the reader runs", async () => {
  const listeners = new Set<() => void>();
  const { source, alteredSource } = altered(() => ({
    watch: (onWakeUp) => {
      listeners.add(onWakeUp);
      return () => void listeners.delete(onWakeUp);
    },
  }));
  const publisher = memoryPublisher();
  // Without a wake-up the next poll would come after the end of the test.
  const timing = { ...LEASE, pollIntervalMs: 600_000, pollBusyMs: 600_000 };
  const relay = createRelay({ sources: [alteredSource], destinations: { out: publisher }, timing, lanes: 1 });
  const runs = { count: 0 };
  relay.on("RunEnded", () => {
    runs.count += 1;
  });
  await relay.start();
  await until("the first run found nothing", () => runs.count === 1);
  assert.equal(listeners.size, 1);
  source.insert({ id: "1", type: "t", key: "k" });
  for (const onWakeUp of listeners) onWakeUp();
  await publisher.arrived(1);
  await relay.stop();
  assert.equal(listeners.size, 0);
});

test("D9 a run's request knows which events are in flight at the moment of the call", async () => {
  const requests: RunRequest[] = [];
  const { source, alteredSource } = altered((store) => ({
    begin: (request) => {
      requests.push(request);
      return store.begin(request);
    },
  }));
  const publisher = memoryPublisher();
  const { promise: answer, resolve: release } = Promise.withResolvers<void>();
  publisher.respond(async () => {
    await answer;
    return { kind: "delivered" };
  });
  const timing = { ...LEASE, pollIntervalMs: 10 };
  await using relay = createRelay({ sources: [alteredSource], destinations: { out: publisher }, timing, lanes: 1 });
  const isInFlight = () => requests[0]?.isInFlight?.("1");
  source.insert({ id: "1", type: "t", key: "k" });
  await relay.start();
  await until("it is on its way", () => isInFlight() === true);
  assert.equal(requests[0]?.isInFlight?.("2"), false);
  release();
  await until("it is settled", () => source.delivered().length === 1 && isInFlight() === false);
});

test("A3 a run that began before a key was free again does not end a drain", async () => {
  const { promise: answer, resolve: release } = Promise.withResolvers<void>();
  const runs = { begun: 0 };
  const listeners = new Set<() => void>();
  // The second run returns the source as it was when it began, and answers late.
  const { source, alteredSource } = altered((store) => ({
    watch: (onWakeUp) => {
      listeners.add(onWakeUp);
      return () => void listeners.delete(onWakeUp);
    },
    begin: async (request) => {
      runs.begun += 1;
      if (runs.begun === 3) await setTimeout(50); // why: a drain that trusts the second run ends in the meantime
      const run = await store.begin(request);
      if (runs.begun !== 2) return run;
      const page = await run.next(100, 1_000_000);
      await answer;
      const pages = [page, []];
      return { lanes: run.lanes, next: async () => pages.shift() ?? [], end: () => run.end() };
    },
  }));
  const publisher = memoryPublisher();
  publisher.respond(async ({ event }) => {
    if (event.id === "1") await until("the second run has begun", () => runs.begun === 2);
    return { kind: "delivered" };
  });
  const timing = { ...LEASE, pollIntervalMs: 600_000, pollBusyMs: 1 };
  await using relay = createRelay({ sources: [alteredSource], destinations: { out: publisher }, timing, lanes: 1 });
  relay.on("BatchSettled", () => {
    if (source.delivered().length !== 1) return;
    source.insert({ id: "2", type: "t", key: "k" });
    for (const onWakeUp of listeners) onWakeUp();
    release();
  });
  source.insert({ id: "1", type: "t", key: "k" });
  await relay.start();
  await relay.drain();
  assert.deepEqual(
    source.delivered().map(({ id }) => id),
    ["1", "2"],
  );
});

test("A18 a relay tells each look for events with its time, and each look at the lanes without one", async () => {
  const source = memorySource();
  const publisher = memoryPublisher();
  const timing = { ...LEASE, pollIntervalMs: 10, balanceMs: 10 };
  await using relay = createRelay({ sources: [source], destinations: { out: publisher }, timing, lanes: 1 });
  const told: (number | null)[] = [];
  relay.on("SourceAnswered", ({ pollMs }) => told.push(pollMs));
  await relay.start();
  await until("both were told", () => told.includes(null) && told.some((ms) => ms !== null));
  assert.ok(told.every((ms) => ms === null || ms >= 0));
});

test("A18 what fails is no answer", async () => {
  const { alteredSource } = altered(() => ({
    begin: () => Promise.reject(new Error("no connection")),
    probe: () => Promise.reject(new Error("no connection")),
  }));
  const publisher = memoryPublisher();
  const timing = { ...LEASE, pollIntervalMs: 10, backoffInitialMs: 10 };
  await using relay = createRelay({ sources: [alteredSource], destinations: { out: publisher }, timing, lanes: 1 });
  const looks: number[] = [];
  const broken: string[] = [];
  relay.on("SourceAnswered", ({ pollMs }) => pollMs !== null && looks.push(pollMs));
  relay.on("SourceBroken", ({ code }) => broken.push(code));
  await relay.start();
  await until("it was told as broken", () => broken.length > 1);
  assert.deepEqual(looks, []);
});
