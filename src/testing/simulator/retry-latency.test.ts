import assert from "node:assert/strict";
import { test } from "node:test";
import { delivered, retry } from "../../core/outcome.ts";
import { RETRY_PRESETS } from "../../core/retry-policy.ts";
import { memoryPublisher } from "../../publishers/memory/memory-publisher.ts";
import { createRelay } from "../../relay/relay.ts";
import { memorySource } from "../../sources/memory/memory-source.ts";
import { SeededRandom } from "./seeded-random.ts";
import { SimProcess } from "./sim-process.ts";
import { VirtualTime } from "./virtual-clock.ts";

const EVERY_MS = 50;
const PATIENCE_MS = 600_000;

/**
 * Delivers events with the shipped engine and the default schedule on virtual time. `failuresOf` says how often each fails
 * first. Returns the times from writing to delivery, sorted.
 */
async function latencies(failuresOf: readonly number[]): Promise<readonly number[]> {
  const time = new VirtualTime(new SeededRandom(1));
  const { clock } = new SimProcess("relay", time, new SeededRandom(2), () => {});
  const source = memorySource({ clock });
  const publisher = memoryPublisher({ clock });
  const relay = createRelay({
    sources: [source],
    destinations: { kafka: publisher },
    routes: [{ destination: "kafka", retry: RETRY_PRESETS.flag }],
    clock,
  });
  const tries = new Map<string, number>();
  const tookMs: number[] = [];
  publisher.respond(({ event }) => {
    const number = Number(event.id);
    const count = tries.get(event.id) ?? 0;
    tries.set(event.id, count + 1);
    if (count < failuresOf[number]!) return retry(`failure ${count + 1} of ${event.id}`);
    tookMs.push(time.nowMs - number * EVERY_MS);
    return delivered;
  });
  failuresOf.forEach((_, number) => {
    time.after(number * EVERY_MS, () =>
      source.insert({ id: String(number), type: "t", key: `k${number}`, payload: "" }),
    );
  });
  void relay.start();
  await time.runUntil(PATIENCE_MS, () => tookMs.length === failuresOf.length);
  const stopped = relay.stop();
  await time.runUntil(PATIENCE_MS * 2);
  await stopped;
  assert.equal(tookMs.length, failuresOf.length, "all arrive");
  return tookMs.toSorted((left, right) => left - right);
}

test("A1 with the default schedule P95 is within 30 s and P99 within 60 s although every third attempt fails", async () => {
  const random = new SeededRandom(7);
  const failures = Array.from({ length: 2_000 }, () => {
    let count = 0;
    while (count < 9 && random.next() < 1 / 3) count += 1;
    return count;
  });
  assert.ok(failures.filter((count) => count > 0).length > 500);
  const sorted = await latencies(failures);
  const quantile = (share: number) => sorted[Math.floor(sorted.length * share)]!;
  assert.ok(quantile(0.95) <= 30_000, `P95 is ${quantile(0.95)} ms`);
  assert.ok(quantile(0.99) <= 60_000, `P99 is ${quantile(0.99)} ms`);
});

test("A1 with the default schedule an event that fails five times arrives within 33 s; the sixth failure is the first that costs more than 60 s", async () => {
  const [fifth] = await latencies([5]);
  const [sixth] = await latencies([6]);
  assert.ok(fifth! >= 31_000 && fifth! <= 33_000, `${fifth} ms`);
  assert.ok(sixth! >= 63_000 && sixth! <= 66_000, `${sixth} ms`);
});
