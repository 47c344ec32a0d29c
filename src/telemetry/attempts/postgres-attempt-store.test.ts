import assert from "node:assert/strict";
import { test } from "node:test";
import { startPostgres } from "../../../test/servers/postgres.ts";
import type { RecordedAttempt } from "../../ports/attempt-recorder.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { openDatabase } from "../../postgres/pool.ts";
import { redactor } from "../logs/redaction.ts";
import { postgresAttemptStore } from "./postgres-attempt-store.ts";

const ATTEMPT: RecordedAttempt = {
  atMs: 1_700_000_000_123.5,
  pipeline: "p",
  eventId: "e1",
  eventType: "t",
  eventKey: "k",
  correlationId: "c",
  outcome: "delivered",
  attempt: 1,
  reason: null,
  errorType: null,
  target: "topic",
  writtenAt: "2023-11-14T22:13:20.000123Z",
  claimedAtMs: 1_700_000_000_100,
  sentAtMs: 1_700_000_000_110.25,
  durationMs: 13.25,
  headers: { tenant: "t-7" },
};

test("F3 A20 attempts are stored unchanged, whatever they contain, without secrets, and are pruned when old", async () => {
  await using server = await startPostgres({ version: 15 });
  const database = openDatabase({ url: server.url });
  await migrateUp(database);
  const store = postgresAttemptStore({
    database,
    instance: "relay-1",
    redact: redactor(["s3cret"]),
    redactHeader: (name, value) => (name === "password" ? "[redacted]" : value),
  });
  const nonsense = "a\0b \ud800 'quoted\"\\ ".padEnd(10_000, "x");
  await store.append([
    ATTEMPT,
    {
      ...ATTEMPT,
      eventId: nonsense.slice(0, 100),
      eventKey: nonsense,
      outcome: "dead",
      attempt: 2 ** 40,
      reason: `${nonsense.slice(0, 30)} s3cret`,
      writtenAt: "2026-02-31T00:00:00Z",
      sentAtMs: null,
      durationMs: null,
      headers: { password: "hunter2", [nonsense]: "with s3cret" },
    },
    { ...ATTEMPT, eventId: "x".repeat(100_000), writtenAt: "yesterday" },
    { ...ATTEMPT, eventId: "buried", claimedAtMs: null, headers: null, writtenAt: null },
  ]);
  await store.append([]);
  const { rows } = await server.query(
    `select event_id, event_key, instance, outcome, attempt, reason, written_at is null as unwritten, headers,
       (extract(epoch from at) * 1000)::float8 as at, (extract(epoch from sent_at) * 1000)::float8 as sent, duration_ms
     from outbox_relay.attempts order by id`,
  );
  assert.deepEqual(rows[0], {
    event_id: "e1",
    event_key: "k",
    instance: "relay-1",
    outcome: "delivered",
    attempt: 1,
    reason: null,
    unwritten: false,
    headers: { tenant: "t-7" },
    at: 1_700_000_000_123.5,
    sent: 1_700_000_000_110.25,
    duration_ms: 13.25,
  });
  assert.equal(rows.length, 3);
  const [odd, buried] = [rows[1]!, rows[2]!];
  assert.deepEqual([odd.outcome, odd.attempt, odd.unwritten, odd.sent], ["dead", 2 ** 31 - 1, true, null]);
  assert.match(odd.reason, /^a\uFFFDb \uFFFD 'quoted"\\ x+ \[redacted\]$/);
  assert.equal(odd.headers.password, "[redacted]");
  assert.doesNotMatch(JSON.stringify(rows), /s3cret|hunter2/);
  assert.deepEqual([buried.event_id, buried.headers], ["buried", null]);
  await server.query("update outbox_relay.attempts set at = clock_timestamp() where event_id = 'buried'");
  assert.equal(await store.prune(60_000, 1), 1);
  assert.equal(await store.prune(60_000, 10), 1);
  assert.equal(await store.prune(60_000, 10), 0);
  await store.close();
});
