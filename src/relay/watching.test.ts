import assert from "node:assert/strict";
import { test } from "node:test";
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
