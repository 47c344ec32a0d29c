import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises"; // why: one case is about a look that takes its time
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

test("D9 a store that can be watched wakes its reader at once, and is watched no longer than it is served", async () => {
  const listeners = new Set<() => void>();
  const { source, alteredSource } = altered(() => ({
    watch: (onNews) => {
      listeners.add(onNews);
      return () => void listeners.delete(onNews);
    },
  }));
  const publisher = memoryPublisher();
  // Without the news nobody would look again before the test is over.
  const timing = { ...LEASE, pollIntervalMs: 600_000, pollBusyMs: 600_000 };
  const relay = createRelay({ sources: [alteredSource], destinations: { out: publisher }, timing, lanes: 1 });
  const looks = { count: 0 };
  relay.on("RunEnded", () => {
    looks.count += 1;
  });
  await relay.start();
  await until("the first look found nothing", () => looks.count === 1);
  assert.equal(listeners.size, 1);
  source.insert({ id: "1", type: "t", key: "k" });
  for (const onNews of listeners) onNews();
  await publisher.arrived(1);
  await relay.stop();
  assert.equal(listeners.size, 0);
});

test("D9 a run's request tells which events are in flight at the moment of asking", async () => {
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

test("A3 a look at the source that began before a key was free again does not end a drain", async () => {
  const { promise: answer, resolve: release } = Promise.withResolvers<void>();
  const looks = { begun: 0 };
  const listeners = new Set<() => void>();
  // The second look sees the source as it was when it began, and answers late.
  const { source, alteredSource } = altered((store) => ({
    watch: (onNews) => {
      listeners.add(onNews);
      return () => void listeners.delete(onNews);
    },
    begin: async (request) => {
      looks.begun += 1;
      if (looks.begun === 3) await setTimeout(50); // why: a drain that believes the second look ends meanwhile
      const run = await store.begin(request);
      if (looks.begun !== 2) return run;
      const page = await run.next(100, 1_000_000);
      await answer;
      const pages = [page, []];
      return { lanes: run.lanes, next: async () => pages.shift() ?? [], end: () => run.end() };
    },
  }));
  const publisher = memoryPublisher();
  publisher.respond(async ({ event }) => {
    if (event.id === "1") await until("the second look has begun", () => looks.begun === 2);
    return { kind: "delivered" };
  });
  const timing = { ...LEASE, pollIntervalMs: 600_000, pollBusyMs: 1 };
  await using relay = createRelay({ sources: [alteredSource], destinations: { out: publisher }, timing, lanes: 1 });
  relay.on("BatchSettled", () => {
    if (source.delivered().length !== 1) return;
    source.insert({ id: "2", type: "t", key: "k" });
    for (const onNews of listeners) onNews();
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
