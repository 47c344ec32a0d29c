import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  BACKWARDS,
  END,
  eventTypeFilter,
  FORWARDS,
  jsonEvent,
  KurrentDBClient,
  START,
} from "@kurrent/kurrentdb-client";
import { type KurrentDb, startKurrentDb } from "./kurrentdb.ts";
import { until } from "./until.ts";

let server: KurrentDb;
let client: KurrentDBClient;

before(async () => {
  server = await startKurrentDb();
  client = KurrentDBClient.connectionString(server.url);
});

after(async () => {
  await client.dispose();
  await server[Symbol.asyncDispose]();
});

const made = (type: string) => jsonEvent({ type, data: { type } });

async function typesOf(read: AsyncIterable<{ readonly event?: { readonly type: string } }>): Promise<string[]> {
  const types: string[] = [];
  for await (const { event } of read) types.push(event?.type ?? "gone");
  return types;
}

test("the fake of KurrentDB reads streams and the whole log in both directions", async () => {
  await client.appendToStream("ways-1", ["A", "B", "C"].map(made));
  assert.deepEqual(await typesOf(client.readStream("ways-1", { fromRevision: 1n })), ["B", "C"]);
  assert.deepEqual(await typesOf(client.readStream("ways-1", { direction: BACKWARDS, fromRevision: END })), [
    "C",
    "B",
    "A",
  ]);
  const all = await typesOf(client.readAll({ direction: FORWARDS, fromPosition: START }));
  const backwards = await typesOf(client.readAll({ direction: BACKWARDS, fromPosition: END }));
  assert.deepEqual(all.toReversed(), backwards);
});

test("the fake of KurrentDB takes the older way of appending too, which a client with a password of its own uses", async () => {
  const credentials = { username: "admin", password: "changeit" };
  const { nextExpectedRevision } = await client.appendToStream("older-1", ["A", "B"].map(made), { credentials });
  assert.equal(nextExpectedRevision, 1n);
  const late = client.appendToStream("older-1", made("C"), { credentials, streamState: "no_stream" });
  await assert.rejects(late, { type: "wrong-expected-version", actualState: 1n });
});

test("the fake of KurrentDB hides what was deleted or is beyond the count to keep, and numbers on after it", async () => {
  await client.appendToStream("short-1", ["A", "B", "C"].map(made));
  await client.setStreamMetadata("short-1", { maxCount: 2 });
  assert.deepEqual(await typesOf(client.readStream("short-1")), ["B", "C"]);
  await client.deleteStream("short-1");
  await assert.rejects(typesOf(client.readStream("short-1")), { type: "stream-not-found" });
  const { nextExpectedRevision } = await client.appendToStream("short-1", made("D"), { streamState: "no_stream" });
  assert.equal(nextExpectedRevision, 3n);
  assert.deepEqual(await typesOf(client.readStream("short-1")), ["D"]);
  await client.tombstoneStream("short-1");
  await assert.rejects(client.appendToStream("short-1", made("E")), { type: "stream-deleted" });
});

test("the fake of KurrentDB filters by the types of events, and says which place it has passed", async () => {
  await client.appendToStream("types-1", ["OrderCreated", "Other", "OrderQueued"].map(made));
  const places: bigint[] = [];
  const filter = eventTypeFilter({
    regex: "^Order(Created|Queued)$",
    checkpointReached: (_, { commit }) => void places.push(commit),
  });
  const subscription = client.subscribeToAll({ fromPosition: START, filter });
  const types: string[] = [];
  subscription.on("data", ({ event }) => types.push(event?.type ?? ""));
  await until("both were shown", () => types.length === 2 && places.length > 0);
  assert.deepEqual(types, ["OrderCreated", "OrderQueued"]);
  await subscription.unsubscribe();
});
