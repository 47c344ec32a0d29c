import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../../core/clock.ts";
import type { TechnicalEvent, TechnicalEventStore } from "../../ports/technical-events.ts";
import { memoryTechnicalEventStore } from "./memory-technical-event-store.ts";
import { type RecorderOptions, TechnicalEventRecorder } from "./technical-event-recorder.ts";

/** Sleeps until the test wakes it. */
class StillClock implements Clock {
  readonly sleeps: { ms: number; wake: () => void }[] = [];
  wallMs = () => 0;
  monotonicMs = () => 0;

  sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      this.sleeps.push({ ms, wake: resolve });
      signal?.addEventListener("abort", () => resolve(), { once: true });
    });

  async pass(): Promise<void> {
    for (const { wake } of this.sleeps.splice(0)) wake();
    await turn();
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

function event(recordId: string): TechnicalEvent {
  return { name: "EventVanished", timestamp: 1, pipeline: "p", recordId };
}

function idsOf(events: readonly TechnicalEvent[]): string[] {
  return events.map((it) => ("recordId" in it ? (it.recordId ?? "") : it.name));
}

function recorder(options: Partial<RecorderOptions> = {}) {
  const clock = new StillClock();
  const memory = memoryTechnicalEventStore();
  const appends: number[] = [];
  let failure: string | null = null;
  const store: TechnicalEventStore = {
    async append(events) {
      appends.push(events.length);
      if (failure !== null) throw new Error(failure);
      await memory.append(events);
    },
    close: () => memory.close(),
  };
  const fail = (reason: string | null) => {
    failure = reason;
  };
  return {
    recorder: new TechnicalEventRecorder({ store, clock, batchSize: 3, ...options }),
    clock,
    memory,
    appends,
    fail,
  };
}

test("D6 technical events are stored in order, together, after the interval", async () => {
  const { recorder: it, clock, memory, appends } = recorder({ intervalMs: 700 });
  it.record(event("1"));
  it.record(event("2"));
  await turn();
  assert.deepEqual([appends, clock.sleeps.map(({ ms }) => ms)], [[], [700]]);
  await clock.pass();
  assert.deepEqual([idsOf(memory.events), appends], [["1", "2"], [2]]);
  assert.deepEqual(clock.sleeps, [], "an idle recorder sets no timer");
});

test("D6 a full batch is stored at once", async () => {
  const { recorder: it, memory, appends } = recorder();
  for (const id of ["1", "2", "3", "4", "5", "6", "7"]) it.record(event(id));
  await turn();
  assert.deepEqual([appends, memory.events.length, it.state.buffered], [[3, 3], 6, 1]);
});

test("D6 a failing store disturbs nothing: a failed batch is retried after the interval", async () => {
  const { recorder: it, clock, memory, appends, fail } = recorder();
  fail("gone");
  for (const id of ["1", "2", "3", "4"]) it.record(event(id));
  await turn();
  assert.deepEqual([appends, it.state.error], [[3], "gone"]);
  it.record(event("5"));
  await turn();
  assert.deepEqual(appends, [3], "no retry before the interval is over");
  fail(null);
  await clock.pass();
  await clock.pass();
  assert.deepEqual(idsOf(memory.events), ["1", "2", "3", "4", "5"]);
  assert.deepEqual(it.state, { buffered: 0, stored: 5, dropped: 0, error: null });
});

test("D6 while the store fails, the oldest are dropped and counted", async () => {
  const { recorder: it, clock, memory, fail } = recorder({ bufferMax: 6 });
  fail("gone");
  for (let id = 1; id <= 20; id++) {
    it.record(event(String(id)));
    await turn();
    assert.ok(it.state.buffered <= 6);
  }
  fail(null);
  for (let round = 0; round < 4; round++) await clock.pass();
  const stored = idsOf(memory.events);
  assert.equal(stored.at(-1), "20");
  assert.equal(it.state.dropped + stored.length, 20);
  assert.deepEqual(
    stored,
    Array.from({ length: stored.length }, (_, index) => String(21 - stored.length + index)),
  );
});

test("D6 a stop stores the waiting events; later ones are counted as dropped", async () => {
  const { recorder: it, memory } = recorder();
  for (const id of ["1", "2", "3", "4"]) it.record(event(id));
  await it.stop();
  await it.stop();
  it.record(event("5"));
  assert.deepEqual(idsOf(memory.events), ["1", "2", "3", "4"]);
  assert.deepEqual(it.state, { buffered: 0, stored: 4, dropped: 1, error: null });
});

test("D6 a stop ends with a store that fails, and with one that never answers", async () => {
  const failing = recorder();
  failing.fail("gone");
  failing.recorder.record(event("1"));
  await failing.recorder.stop();
  assert.deepEqual(failing.recorder.state, { buffered: 0, stored: 0, dropped: 1, error: "gone" });

  const clock = new StillClock();
  const store = { append: () => new Promise<void>(() => {}), close: async () => {} };
  const silent = new TechnicalEventRecorder({ store, clock, batchSize: 1 });
  silent.record(event("1"));
  const stopping = silent.stop();
  await turn();
  await clock.pass();
  await stopping;
});

test("D6 the memory store keeps the last events only", async () => {
  const store = memoryTechnicalEventStore(2);
  await store.append([event("1"), event("2"), event("3")]);
  assert.deepEqual(idsOf(store.events), ["2", "3"]);
  assert.equal(store.ofName("EventVanished").length, 2);
  assert.equal(store.ofName("RunEnded").length, 0);
});
