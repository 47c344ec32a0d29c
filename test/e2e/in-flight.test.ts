import assert from "node:assert/strict";
import { test } from "node:test";
import type { Publisher } from "../../src/ports/publisher.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { laneOf } from "../../src/sources/memory/memory-lanes.ts";
import { memorySource } from "../../src/sources/memory/memory-source.ts";
import { until } from "../servers/until.ts";

const LANES = 4;
const IN_FLIGHT_MAX = 40;

/** Takes everything and answers nothing, so that whatever is claimed stays in flight. */
const silent: Publisher = {
  name: "silent",
  capabilities: { keyOrderInBatch: false, deduplicates: false },
  publish: (_batch, _report, signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
  close: async () => {},
};

test("A19 B4: no more events are in flight than the limit says, also when the backlog comes lane by lane", async () => {
  const source = memorySource();
  for (const id of idsByLane()) source.insert({ id, type: "order.placed", key: id });
  const limits = { inFlightEventsMax: IN_FLIGHT_MAX, pageRows: IN_FLIGHT_MAX, batchSize: 5, runMs: 800 };
  const timing = { shutdownMs: 100 };
  const relay = createRelay({ sources: [source], destinations: { silent }, lanes: LANES, limits, timing });
  const runs: number[] = [];
  relay.on("RunEnded", ({ claimed }) => runs.push(claimed));
  await relay.start();
  await until("a run that claimed something has ended", () => runs.some((claimed) => claimed > 0));
  await relay.stop();
  const inFlight = runs.reduce((sum, claimed) => sum + claimed, 0);
  assert.ok(inFlight <= IN_FLIGHT_MAX, `${inFlight} events were in flight, at most ${IN_FLIGHT_MAX} are allowed`);
});

/** Keys of lane 0 first, then those of lane 1: as many of each as the whole limit. */
function idsByLane(): string[] {
  const ids = Array.from({ length: 2_000 }, (_, at) => `key-${at}`);
  const ofLane = (lane: number) => ids.filter((id) => laneOf({ id, key: id }, LANES) === lane);
  return Array.from({ length: LANES }, (_, lane) => ofLane(lane).slice(0, IN_FLIGHT_MAX)).flat();
}
