import assert from "node:assert/strict";
import { test } from "node:test";
import { startPostgres } from "../../../test/servers/postgres.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { openDatabase } from "../../postgres/pool.ts";
import { postgresTechnicalEventStore } from "./postgres-technical-event-store.ts";

function recordingDatabase() {
  const calls: { text: string; values: unknown[] }[] = [];
  return { calls, query: async (text: string, values: unknown[]) => void calls.push({ text, values }) };
}

test("D6 a batch is written by one statement with one parameter, into the given schema", async () => {
  const database = recordingDatabase();
  const store = postgresTechnicalEventStore({ database, schema: 'my "relay"' });
  await store.append([
    { name: "EventVanished", timestamp: 1_700_000_000_000, pipeline: "p", recordId: "e1" },
    { name: "LaneReleased", timestamp: 1_700_000_000_001, pipeline: "p", lane: 3 },
  ]);
  await store.append([]);
  assert.equal(database.calls.length, 1);
  const { text, values } = database.calls[0]!;
  assert.match(text, /insert into "my ""relay"""\.technical_events /);
  assert.equal(values.length, 1);
  assert.equal(JSON.parse(String(values[0])).length, 2);
});

test("D6 large numbers are written as text, and characters that jsonb rejects are replaced", async () => {
  const database = recordingDatabase();
  await postgresTechnicalEventStore({ database }).append([
    { name: "LaneTaken", timestamp: 1, pipeline: "p", lane: 0, epoch: 2n ** 60n, crashes: 0 },
    { name: "ChoreFailed", timestamp: 2, pipeline: "p", chore: "c", reason: "a\0b\ud800c" },
  ]);
  const [taken, failed] = JSON.parse(String(database.calls[0]?.values[0]));
  assert.equal(taken.epoch, "1152921504606846976");
  assert.equal(failed.reason, "a\uFFFDb\uFFFDc");
});

test("D6 technical events are stored in the relay's table, in order, with all their fields", async () => {
  await using server = await startPostgres({ version: 18 });
  const database = openDatabase({ url: server.url, relaySchema: "my relay" });
  try {
    await migrateUp(database);
    const about = { pipeline: "p", intentType: "t", target: "kafka", key: null, correlationId: "c1" };
    const failed = {
      attempt: 2,
      durationMs: 1.5,
      scope: "event",
      reason: "a\0 it's \ud800",
      errorType: "PUBLISH_FAILED",
      stack: null,
      retryInMs: 30_000,
    } as const;
    await postgresTechnicalEventStore({ database: database.pool, schema: "my relay" }).append([
      { name: "IntentRelayFailed", timestamp: 1_700_000_000_123, recordId: "e1", ...about, ...failed },
      { name: "LaneTaken", timestamp: 1_700_000_000_124.5, pipeline: "p", lane: 0, epoch: 2n ** 60n, crashes: 0 },
      { name: "InstanceJoined", timestamp: 1_700_000_000_125, instance: "i1" },
    ]);
    const { rows } = await server.query(
      `select (extract(epoch from at) * 1000)::float8 as at, name, pipeline, record_id, detail
       from "my relay".technical_events order by id`,
    );
    const { pipeline, ...unnamed } = about;
    const detail = { ...unnamed, ...failed, reason: "a\uFFFD it's \uFFFD" };
    assert.deepEqual(rows, [
      { at: 1_700_000_000_123, name: "IntentRelayFailed", pipeline, record_id: "e1", detail },
      {
        at: 1_700_000_000_124.5,
        name: "LaneTaken",
        pipeline,
        record_id: null,
        detail: { lane: 0, epoch: "1152921504606846976", crashes: 0 },
      },
      { at: 1_700_000_000_125, name: "InstanceJoined", pipeline: null, record_id: null, detail: { instance: "i1" } },
    ]);
  } finally {
    await database.close();
  }
});
