import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../test/servers/until.ts";
import { retry } from "../core/outcome.ts";
import { schedule } from "../core/retry-policy.ts";
import { memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { createRelay } from "./relay.ts";

const QUICK = { leaseMs: 2_000, leaseMarginMs: 400, pollIntervalMs: 10, publishTimeoutMs: 300, balanceMs: 20 };
const PIPELINE = "memory->out";
const STOPPED = { by: "mia", reason: "a deploy", handsOver: false };

function stage(durableClaims: boolean) {
  const source = memorySource({ durableClaims });
  const publisher = memoryPublisher({ keyOrderInBatch: false });
  const relay = createRelay({
    sources: [source],
    destinations: { out: publisher },
    routes: [{ destination: "out", retry: schedule(Array(5_000).fill(5)) }],
    timing: QUICK,
    lanes: 2,
  });
  const told: string[] = [];
  for (const name of ["PipelinePaused", "PipelineResumed", "LaneReleased"] as const)
    relay.on(name, () => told.push(name));
  const insert = (...ids: string[]) => source.insert(...ids.map((id) => ({ id, type: "t", key: id })));
  const owners = () => [...source.database.tables.pipelines.get(PIPELINE)!.lanes.values()].map(({ owner }) => owner);
  /** Many looks at the lanes, each of which could have been followed by claims. */
  const looks = async () => {
    const beganMs = performance.now();
    await until("many looks were taken", () => performance.now() - beganMs > 8 * QUICK.balanceMs);
  };
  return { source, publisher, relay, told, insert, owners, looks };
}

for (const durableClaims of [false, true]) {
  test(`A17 a paused pipeline claims neither new events nor failed ones, and goes on in order (durable claims: ${durableClaims})`, async () => {
    const { source, publisher, relay, told, insert, owners, looks } = stage(durableClaims);
    await using _ = relay;
    insert("a");
    publisher.respond(({ event }) => (event.id === "bad" ? retry("no") : { kind: "delivered" }));
    await relay.start();
    await until("it runs", () => publisher.delivered.length === 1);
    insert("bad");
    await until("one is tried again and again", () => source.holds().some(({ attempts }) => attempts > 1));
    source.database.pause(PIPELINE, STOPPED);
    await until("it is told", () => told.includes("PipelinePaused"));
    await until("nothing is in flight", () => source.pending().every(({ state }) => state === "PENDING"));
    const attempts = source.holds()[0]?.attempts;
    insert("b", "c");
    await looks();
    assert.deepEqual([publisher.delivered.length, source.holds()[0]?.attempts], [1, attempts]);
    assert.ok(
      owners().every((owner) => owner !== null),
      "it keeps its lanes",
    );
    publisher.respond(null);
    source.database.pause(PIPELINE, null);
    await until("all is delivered", () => publisher.delivered.length === 4);
    assert.deepEqual(told, ["PipelinePaused", "PipelineResumed"]);
  });
}

test("A17 a pause that asks for the lanes has them handed over, and nobody takes them until it is over", async () => {
  const { source, publisher, relay, insert, owners, looks, told } = stage(false);
  await using _ = relay;
  insert("a");
  await relay.start();
  await until("it runs", () => publisher.delivered.length === 1);
  source.database.pause(PIPELINE, { ...STOPPED, handsOver: true });
  await until("both lanes are free", () => owners().every((owner) => owner === null));
  insert("b");
  await looks();
  assert.deepEqual(
    [owners(), told],
    [
      [null, null],
      ["PipelinePaused", "LaneReleased", "LaneReleased"],
    ],
  );
  source.database.pause(PIPELINE, null);
  await until("it goes on", () => publisher.delivered.length === 2);
});

test("A17 a drain leaves a paused pipeline as it is and says what waits there", async () => {
  const { source, publisher, relay, insert } = stage(false);
  await using _ = relay;
  insert("a", "b");
  source.database.pause(PIPELINE, STOPPED);
  const { paused } = await relay.drain();
  assert.deepEqual([paused, publisher.delivered], [[{ pipeline: PIPELINE, waiting: 2 }], []]);
});
