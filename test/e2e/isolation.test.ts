import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { exponentialRetry } from "../../src/core/retry-policy.ts";
import { freePort } from "../servers/free-port.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { BILLING } from "./outbox-tables.ts";
import { type NewEvent, type Scene, type SceneRelayOptions, withScene } from "./scene.ts";
import { sinkPublisher } from "./sink-publisher.ts";

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ version: 18 });
});
after(() => server[Symbol.asyncDispose]());

/** Slow enough that an event behind it would be noticed, and never so late that the publish is given up. */
const SLOW_MS = 1_000;
const HEALTHY_KEYS = 20;
const HEALTHY_EVENTS = 200;

describe("one that is slow or broken slows nobody else", () => {
  test("F4: a poison key, a slow key and a dead second destination leave the other keys as quick as before", async () => {
    const troubled: NewEvent[] = Array.from({ length: 40 }, (_, at) => [
      { key: "poison" },
      { key: "slow", type: "slow.moved" },
      { key: `dead-${at}`, type: "dead.sent" },
    ]).flat();
    const seen: string[] = [];
    // What the machine does besides may fall into either measurement; a key that is held back shows in each.
    for (let round = 0; round < 4; round += 1) {
      const quietMs = await latencyOfHealthyKeys([], async () => {});
      const troubledMs = await latencyOfHealthyKeys(troubled, async ({ sink }) => {
        await sink.order({ kind: "retry", key: "poison" });
        await sink.order({ kind: "delay", key: "slow", ms: SLOW_MS });
      });
      // Within twice the quiet time, but not judged below what a busy machine adds by itself.
      if (troubledMs <= Math.max(2 * quietMs, SLOW_MS / 2)) return;
      seen.push(`p99 was ${quietMs} ms, with trouble ${troubledMs} ms`);
    }
    assert.fail(seen.join("; "));
  });

  test("F4: a topic that does not exist keeps its own events back, however many come first", async () => {
    await withScene(server, [BILLING], async ({ arrived, insert, relay, sink }) => {
      await sink.order({ kind: "unknown-topic", topic: "lost.topic" });
      const lost = await insert(
        BILLING,
        Array.from({ length: 60 }, (_, at) => ({ key: `lost-${at % 7}`, type: "lost.topic" })),
      );
      const live = await relay({ limits: { runRowsMax: 20, pageRows: 10, batchSize: 5 } });
      await live.waitFor("CircuitOpened", ({ topic }) => topic === "lost.topic");
      const others = await insert(BILLING, [{ key: "a" }, { key: "b" }, { key: null }]);
      await arrived(others);
      assert.deepEqual(live.told("IntentDeadLettered"), []);
      await sink.clearFaults();
      await arrived(lost);
      const ofKey = (ids: readonly string[]) => ids.filter((id) => lost.indexOf(id) % 7 === 0 && lost.includes(id));
      assert.deepEqual(ofKey((await sink.arrivals()).map(({ id }) => id)), ofKey(lost));
    });
  });

  test("F4: an event that gets no answer holds back its own key and no other connection", async () => {
    await withScene(server, [BILLING], async ({ arrived, insert, relay, sink }) => {
      await sink.order({ kind: "hang", key: "silent", count: 1 });
      const timing = { leaseMs: 30_000, leaseMarginMs: 1_000, publishTimeoutMs: 8_000 };
      const live = await relay({ lanes: 1, timing });
      const [silent] = await insert(BILLING, [{ key: "silent" }]);
      const others: string[] = [];
      for (let at = 0; at < 30; at += 1) others.push(...(await insert(BILLING, [{ key: `k${at % 5}` }])));
      const before = await arrived(others);
      assert.ok(!before.includes(silent!));
      await arrived([silent!]);
      assert.deepEqual(live.told("CircuitOpened"), []);
    });
  });
});

/** Inserts events of many healthy keys behind the troubled ones; the 99th percentile from insert to arrival. */
async function latencyOfHealthyKeys(
  troubled: readonly NewEvent[],
  prepare: (scene: Scene) => Promise<void>,
): Promise<number> {
  let p99Ms = Number.POSITIVE_INFINITY;
  const deadPort = await freePort();
  await withScene(server, [BILLING], async (scene) => {
    await prepare(scene);
    const options: SceneRelayOptions = {
      destinations: { sink: sinkPublisher(scene.sink.port), dead: sinkPublisher(deadPort) },
      routes: [
        { types: ["dead.*"], destination: "dead" },
        { destination: "sink", retry: exponentialRetry({ initialMs: 50, maxMs: 200 }), onExhausted: "block" },
      ],
      lanes: 2,
    };
    await scene.relay(options);
    await scene.insert(BILLING, troubled);
    const insertedMs = new Map<string, number>();
    for (let at = 0; at < HEALTHY_EVENTS; at += 1) {
      const [id] = await scene.insert(BILLING, [{ key: `healthy-${at % HEALTHY_KEYS}` }]);
      insertedMs.set(id!, Date.now());
    }
    await scene.arrived([...insertedMs.keys()]);
    const delays = (await scene.sink.arrivals()).flatMap(({ id, atMs }) => {
      const sinceMs = insertedMs.get(id);
      return sinceMs === undefined ? [] : [Math.max(0, atMs - sinceMs)];
    });
    p99Ms = delays.toSorted((a, b) => a - b)[Math.floor(delays.length * 0.99) - 1]!;
  });
  return p99Ms;
}
