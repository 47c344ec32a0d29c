import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../test/servers/until.ts";
import { retry } from "../core/outcome.ts";
import { scheduledRetry } from "../core/retry-policy.ts";
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
    routes: [{ destination: "out", retry: scheduledRetry(Array(5_000).fill(5)) }],
    timing: QUICK,
    lanes: 2,
  });
  const reported: string[] = [];
  for (const name of ["PipelinePaused", "PipelineResumed", "LaneReleased"] as const)
    relay.on(name, () => reported.push(name));
  const insert = (...ids: string[]) => source.insert(...ids.map((id) => ({ id, type: "t", key: id })));
  const owners = () => [...source.database.tables.pipelines.get(PIPELINE)!.lanes.values()].map(({ owner }) => owner);
  /** Waits for many surveys, each of which could have been followed by claims. */
  const surveys = async () => {
    const beganMs = performance.now();
    await until("many surveys were made", () => performance.now() - beganMs > 8 * QUICK.balanceMs);
  };
  return { source, publisher, relay, reported, insert, owners, surveys };
}

for (const durableClaims of [false, true]) {
  test(`A17 a paused pipeline claims neither new events nor failed ones, then continues in order (durable claims: ${durableClaims})`, async () => {
    const { source, publisher, relay, reported, insert, owners, surveys } = stage(durableClaims);
    await using _ = relay;
    insert("a");
    publisher.respond(({ event }) => (event.id === "bad" ? retry("no") : { kind: "delivered" }));
    await relay.start();
    await until("it runs", () => publisher.delivered.length === 1);
    insert("bad");
    await until("one is retried repeatedly", () => source.holds().some(({ attempts }) => attempts > 1));
    source.database.pause(PIPELINE, STOPPED);
    await until("it is reported", () => reported.includes("PipelinePaused"));
    await until("nothing is in flight", () => source.pending().every(({ state }) => state === "PENDING"));
    const attempts = source.holds()[0]?.attempts;
    insert("b", "c");
    await surveys();
    assert.deepEqual([publisher.delivered.length, source.holds()[0]?.attempts], [1, attempts]);
    assert.ok(
      owners().every((owner) => owner !== null),
      "it keeps its lanes",
    );
    publisher.respond(null);
    source.database.pause(PIPELINE, null);
    await until("all is delivered", () => publisher.delivered.length === 4);
    assert.deepEqual(reported, ["PipelinePaused", "PipelineResumed"]);
  });
}

test("A17 a pause with hand-over releases the lanes, and no instance takes them until it ends", async () => {
  const { source, publisher, relay, insert, owners, surveys, reported } = stage(false);
  await using _ = relay;
  insert("a");
  await relay.start();
  await until("it runs", () => publisher.delivered.length === 1);
  source.database.pause(PIPELINE, { ...STOPPED, handsOver: true });
  await until("both lanes are free", () => owners().every((owner) => owner === null));
  insert("b");
  await surveys();
  assert.deepEqual(
    [owners(), reported],
    [
      [null, null],
      ["PipelinePaused", "LaneReleased", "LaneReleased"],
    ],
  );
  source.database.pause(PIPELINE, null);
  await until("it continues", () => publisher.delivered.length === 2);
});

test("A17 a drain leaves a paused pipeline paused and reports its pending events", async () => {
  const { source, publisher, relay, insert } = stage(false);
  await using _ = relay;
  insert("a", "b");
  source.database.pause(PIPELINE, STOPPED);
  const { paused } = await relay.drain();
  assert.deepEqual([paused, publisher.delivered], [[{ pipeline: PIPELINE, waiting: 2 }], []]);
});
