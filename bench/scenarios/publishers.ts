import { randomUUID } from "node:crypto";
import type { Message } from "../../src/core/event.ts";
import { until } from "../../test/servers/until.ts";
import { atLeast, type Figure, measured, type Scenario, type ScenarioOptions } from "../figure.ts";
import { measureParts } from "../measure-parts.ts";
import type { PublisherBench, PublisherStand } from "../publishers/publisher-stand.ts";
import { STANDS } from "../publishers/stands.ts";
import { besideBroken } from "./isolation.ts";

const BATCH = 500;
const PAYLOAD = Buffer.from(JSON.stringify({ text: "x".repeat(188) }));
/** As many as an engine with four lanes sends at a time. */
const CONCURRENT = 8;
/** Each key is in one batch at a time, once: a publisher that sends a key's events one by one loses nothing by it. */
const KEYS = BATCH * CONCURRENT * 2;
/** The machine's mood changes: the two take turns, the first round warms up, and the better half of the others counts. */
const ROUNDS = 5;
const ROUND_MS = 2_000;
const GOAL_PERCENT = 70;

/**
 * Each destination's publisher against its bare client, in turns on the same server, batches of 500 with 200 B each,
 * counted at the destination; and a healthy destination beside one that is dead or slow.
 */
export const publishers: Scenario = async (options) => [
  ...(await measureParts(
    options,
    Object.fromEntries(STANDS.map((stand) => [stand.name, () => compare(stand, options)])),
  )),
  ...(await measureParts(options, {
    "beside a dead destination": () => besideBroken("dead", options),
    "beside a slow destination": () => besideBroken("slow", options),
  })),
];

async function compare(bench: PublisherBench, { scale, say }: ScenarioOptions): Promise<Figure[]> {
  await using stand = await bench.open();
  const rates: Record<"raw" | "ours", number[]> = { raw: [], ours: [] };
  const send = {
    raw: (batch: readonly Message[]) => stand.sendRaw(batch),
    ours: (batch: readonly Message[]) => publishAll(stand, batch),
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of round % 2 === 0 ? (["raw", "ours"] as const) : (["ours", "raw"] as const)) {
      const perSecond = await rateOf(stand, send[name], ROUND_MS * scale);
      if (round > 0) rates[name].push(perSecond);
      say(`  ${name}: ${Math.round(perSecond)} events/s`);
    }
  }
  const [raw, ours] = [bestHalf(rates.raw), bestHalf(rates.ours)];
  return [
    measured("bare client", raw, "events/s"),
    measured("publisher", ours, "events/s"),
    atLeast("publisher / bare client", (ours / raw) * 100, "%", GOAL_PERCENT),
  ];
}

async function publishAll({ publisher }: PublisherStand, batch: readonly Message[]): Promise<void> {
  let delivered = 0;
  let failure = "";
  await publisher.publish(
    batch,
    (_, outcome) => {
      if (outcome.kind === "delivered") delivered += 1;
      else failure = JSON.stringify(outcome);
    },
    new AbortController().signal,
  );
  if (delivered !== batch.length) throw new Error(`${delivered} of ${batch.length} were delivered: ${failure}`);
}

/** Several senders at a time until the time is over; what was sent must have arrived, or there is no figure. */
async function rateOf(
  stand: PublisherStand,
  send: (batch: readonly Message[]) => Promise<void>,
  forMs: number,
): Promise<number> {
  const before = await stand.arrived();
  const startedMs = performance.now();
  let batches = 0;
  const work = async () => {
    while (performance.now() - startedMs < forMs) {
      batches += 1;
      await send(newBatch(stand.topic, batches * BATCH));
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, work));
  const ms = performance.now() - startedMs;
  const wanted = before + batches * BATCH;
  await until("all has arrived", async () => (await stand.arrived()) >= wanted);
  const arrived = await stand.arrived();
  if (arrived !== wanted) throw new Error(`${arrived - before} of ${wanted - before} arrived: no figure can be given`);
  return (batches * BATCH * 1_000) / ms;
}

function newBatch(topic: string, first: number): Message[] {
  return Array.from({ length: BATCH }, (_, index) => {
    const id = randomUUID();
    const key = `key-${(first + index) % KEYS}`;
    const headers = { "event-id": id, "correlation-id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301" };
    const event = { id, type: topic, key, payload: PAYLOAD, headers: {}, correlationId: null, createdAt: null };
    return { event, topic, key, headers, payload: PAYLOAD };
  });
}

function bestHalf(rates: readonly number[]): number {
  const best = rates.toSorted((a, b) => b - a).slice(0, Math.ceil(rates.length / 2));
  return best.reduce((sum, rate) => sum + rate, 0) / best.length;
}
