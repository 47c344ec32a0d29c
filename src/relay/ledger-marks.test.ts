import assert from "node:assert/strict";
import { test } from "node:test";
import { memorySource } from "../sources/memory/memory-source.ts";
import { eventsOfMarks, markOf } from "./ledger-marks.ts";

const SPEC = { name: "p", types: null, lanes: 1, attemptsMax: 3, payloadBytesMax: 1_000, headersMax: 10 };
const NOW = "2026-01-01T00:00:00Z";

async function stage() {
  const source = memorySource();
  const store = source.pipeline(SPEC);
  await store.prepare();
  const insert = (id: string, payload: string) => source.insert({ id, type: "t", key: "k", payload, createdAt: NOW });
  const marksOf = async (...ids: string[]) => (await store.readUnsettled(ids)).events.map(markOf);
  return { source, store, insert, marksOf };
}

test("A2 a mark identifies its event, whatever kind of id the event has", async () => {
  const { store, insert, marksOf } = await stage();
  const ids = ["7", "a\nb", "5c2f6c0e-7b1a-4a53-9a0f-2f6f0f3d8f11"];
  for (const id of ids) insert(id, `payload of ${id}`);
  const marks = await marksOf(...ids);
  assert.equal(marks[2], ids[2], "a UUID needs no fingerprint");
  const { batches, reusedIds } = await eventsOfMarks(store, [{ batch: 4n, ids: marks }]);
  assert.deepEqual(batches, [{ batch: 4n, ids }]);
  assert.equal(reusedIds, 0);
});

test("A2 an id that a database gave out again belongs to a new event, which counts as not delivered", async () => {
  const { source, store, insert, marksOf } = await stage();
  insert("7", "before the failover");
  insert("8", "kept");
  const marks = await marksOf("7", "8");
  source.database.delete("7");
  insert("7", "after the failover");
  const { batches, reusedIds } = await eventsOfMarks(store, [{ batch: 4n, ids: marks }]);
  assert.deepEqual(batches, [{ batch: 4n, ids: ["8"] }]);
  assert.equal(reusedIds, 1);
});

test("A2 an event that is settled or gone is not marked: by then its id may belong to a new event", async () => {
  const { source, store, insert, marksOf } = await stage();
  for (const id of ["7", "8"]) insert(id, "x");
  const marks = await marksOf("7", "8");
  source.database.delete("7");
  source.database.mark("8");
  const { batches } = await eventsOfMarks(store, [{ batch: 4n, ids: marks }]);
  assert.deepEqual(batches, [{ batch: 4n, ids: [] }]);
});
