import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises"; // why: lets what was woken run; time itself stands still
import type { Clock } from "../core/clock.ts";
import { healthOf } from "../http/health/health.ts";
import { FACTS } from "../http/health/health-fixture.test.ts";
import { overviewSchema, seriesSchema } from "../http/schemas/overview.ts";
import type { RelayQuestions } from "../operations/overview/relay-figures.ts";
import type { Backlog } from "../ports/queue-store.ts";
import { TechnicalEventBus } from "../relay/technical-event-bus.ts";
import { BacklogWatch, countBacklogs } from "../telemetry/backlog-watch.ts";
import { Condition } from "../telemetry/condition.ts";
import { OverviewHistory } from "../telemetry/metrics/overview-history.ts";
import { OverviewView } from "./overview-view.ts";

/** A clock that advances only on demand, one second at a time. */
class SteppedClock implements Clock {
  #nowMs = Date.parse("2026-01-02T03:00:00Z");
  #sleepers: { readonly untilMs: number; readonly wake: () => void }[] = [];
  wallMs = () => this.#nowMs;
  monotonicMs = () => this.#nowMs;
  sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((wake) => {
      if (signal?.aborted) return wake();
      this.#sleepers.push({ untilMs: this.#nowMs + ms, wake });
      signal?.addEventListener("abort", () => wake(), { once: true });
    });

  async pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      this.#nowMs += 1_000;
      const due = this.#sleepers.filter(({ untilMs }) => untilMs <= this.#nowMs);
      this.#sleepers = this.#sleepers.filter(({ untilMs }) => untilMs > this.#nowMs);
      for (const { wake } of due) wake();
      await turn();
    }
  }
}

const PIPELINE = "orders.outbox->kafka";

function scene({ hasQuestions = true } = {}) {
  const clock = new SteppedClock();
  const asked = { delivered: 0, holds: 0, actions: 0, counts: 0 };
  const startedMs = clock.monotonicMs();
  const seconds = () => (clock.monotonicMs() - startedMs) / 1_000;
  /** A hundred are published each second, by any instance, and ten more wait. */
  const world = { isDown: false };
  const answer = async <T>(what: keyof typeof asked, value: () => T): Promise<T> => {
    asked[what] += 1;
    if (world.isDown) throw new Error("the database is gone");
    return value();
  };
  const questions: RelayQuestions = {
    delivered: () =>
      answer("delivered", () => ({
        totals: new Map([[PIPELINE, BigInt(100 * seconds())]]),
        paused: new Map(),
        instances: [{ id: "i1", name: "host/1", joinedAt: "2026-01-02T03:00:00.000Z", lanes: 16 }],
      })),
    holds: () =>
      answer(
        "holds",
        () =>
          new Map([
            [PIPELINE, { retrying: 1, parkedKeys: 2, deadKeys: 1, dead: 0, deadSince: null, parkedSince: null }],
          ]),
      ),
    actions: () => answer("actions", () => []),
  };
  const countOne = (): Promise<Backlog> =>
    answer("counts", () => ({ pending: 10 * seconds(), isEstimate: false, oldestAgeMs: null, behindDead: 0, dead: 0 }));
  const ends = { pipeline: PIPELINE, source: "orders.outbox", destination: "kafka" };
  const count = () => countBacklogs({}, new Map([[PIPELINE, countOne]]));
  const backlog = new BacklogWatch([{ source: ends.source, schema: "orders", pipelines: [ends], count }], clock);
  const history = new OverviewHistory(clock);
  const bus = new TechnicalEventBus(clock);
  history.window.listen(bus, () => "kafka");
  const view = new OverviewView({
    clock,
    history,
    questions: hasQuestions ? questions : null,
    destinations: ["kafka", "unused"],
    condition: new Condition(clock),
    engine: () => ({ backlog, pipelines: [ends] }),
    health: async () => healthOf(FACTS),
    unreachable: async () => [],
    redact: (text) => text,
  });
  return { asked, bus, clock, history, view, world };
}

test("F3 B7 while no client watches, the points of an hour cost one cheap statement in ten seconds", async () => {
  const { asked, clock, history, view } = scene();
  void view.start();
  await clock.pass(3_600);
  assert.deepEqual(asked, { delivered: 360, holds: 0, actions: 0, counts: 60 });
  assert.equal(history.ring.points.length, 360);
  assert.equal(history.ring.last?.pending, 36_000, "a count of the last minute is shown");
  view.stop();
});

test("F3 any number of clients costs the database as much as one: sums every two seconds, counts every five", async () => {
  const { asked, clock, view } = scene();
  void view.start();
  for (let second = 0; second < 100; second += 1) {
    await Promise.all(Array.from({ length: 50 }, () => view.overview()));
    await clock.pass(1);
  }
  assert.ok(asked.delivered <= 51, `${asked.delivered} sums`);
  assert.ok(asked.counts <= 21 && asked.holds <= 21, `${asked.counts} counts, ${asked.holds} counts at the holds`);
  view.stop();
});

test("F3 the overview has the rates of all instances, and an unreachable database leaves nulls, not errors", async () => {
  const { clock, history, view, world } = scene();
  void view.start();
  for (let second = 0; second < 60; second += 1) {
    await view.overview();
    await clock.pass(1);
  }
  const busy = overviewSchema.parse(await view.overview());
  assert.ok(Math.abs(busy.publishedPerSecond - 100) < 1, `${busy.publishedPerSecond} a second`);
  assert.ok(Math.abs((busy.writtenPerSecond ?? 0) - 110) < 1, `${busy.writtenPerSecond} written a second`);
  assert.deepEqual([busy.publishedTotal, busy.drainMs, busy.instances.length], ["6000", null, 1]);
  assert.deepEqual(
    busy.destinations.map(({ destination, pipelines, state }) => [destination, state, pipelines.length]),
    [
      ["kafka", "running", 1],
      ["unused", "idle", 0],
    ],
  );
  const before = history.ring.points.length;
  world.isDown = true;
  await clock.pass(20);
  const down = overviewSchema.parse(await view.overview());
  const unknown = [down.pending, down.oldestAgeMs, down.writtenPerSecond, down.instances.length];
  assert.deepEqual([...unknown, down.publishedTotal], [null, null, null, 0, "6000"]);
  const points = seriesSchema.parse(await view.series()).points.slice(before);
  assert.ok(points.length >= 2);
  assert.deepEqual([points.at(-1)?.pending, points.at(-1)?.written, points.at(-1)?.published], [null, null, 0]);
  world.isDown = false;
  await clock.pass(10);
  assert.notEqual((await view.overview()).pending, null);
  view.stop();
});

test("F3 D7 without a store to ask, the process counts its own deliveries", async () => {
  const { asked, bus, clock, view } = scene({ hasQuestions: false });
  void view.start();
  for (let second = 0; second < 30; second += 1) {
    const latency = null;
    bus.emit("BatchSettled", { pipeline: PIPELINE, lane: 0, delivered: 7, failed: 0, durationMs: 1, latency });
    await view.overview();
    await clock.pass(1);
  }
  const { instances, parkedKeys, pending, publishedPerSecond, publishedTotal } = await view.overview();
  assert.ok(Math.abs(publishedPerSecond - 7) < 1, `${publishedPerSecond} a second`);
  assert.deepEqual([publishedTotal, pending, parkedKeys, instances.length], ["210", 300, 0, 0]);
  assert.deepEqual([asked.delivered, asked.holds], [0, 0]);
  view.stop();
});
