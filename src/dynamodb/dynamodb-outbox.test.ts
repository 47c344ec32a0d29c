import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import { type DynamoDb, startDynamoDb } from "../../test/servers/dynamodb.ts";
import { isRelayError } from "../core/errors.ts";
import { type DynamoDbOutbox, dynamodbOutbox } from "./dynamodb-outbox.ts";
import type { DynamoDbItem } from "./intent-record.ts";
import { createTables } from "./tables.ts";

const REGION = "eu-central-1";
const credentials = { accessKeyId: "local", secretAccessKey: "local" };

let server: DynamoDb;
let client: DynamoDBClient;
let outbox: DynamoDbOutbox;

before(async () => {
  server = await startDynamoDb();
  client = new DynamoDBClient({ endpoint: server.endpoint, region: REGION, credentials });
  await createTables(client);
  // What is there is left alone.
  await createTables(client);
  outbox = dynamodbOutbox({ client });
});

after(async () => {
  client?.destroy();
  await server?.[Symbol.asyncDispose]();
});

async function itemOf(id: string, TableName = "outbox"): Promise<DynamoDbItem | undefined> {
  return (await client.send(new GetItemCommand({ TableName, Key: { id: { S: id } }, ConsistentRead: true }))).Item;
}

async function written(intent: { type?: string; payload?: unknown; key?: string } = {}) {
  const [id] = await outbox.write({ type: "Notify", payload: "{}", ...intent });
  return (await outbox.read([id!])).get(id!)!;
}

const put = (item: DynamoDbItem) => client.send(new PutItemCommand({ TableName: "outbox", Item: item }));
const isCode = (code: Parameters<typeof isRelayError>[1]) => (error: unknown) => isRelayError(error, code);
const failure = (reason: string) => ({ at: Date.now(), reason });

describe("writing intents", () => {
  test("D3 an intent is an item of the documented shape", async () => {
    const intent = { type: "Notify", payload: { user: 7 }, key: "u-7", headers: { tenant: "t" }, correlationId: "c-1" };
    const [id] = await outbox.write(intent);
    assert.match(id!, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const { created_at, retry_at, ...rest } = (await itemOf(id!))!;
    assert.deepEqual(rest, {
      id: { S: id },
      intent: { M: { type: { S: "Notify" }, payload: { S: '{"user":7}' } } },
      key: { S: "u-7" },
      headers: { M: { tenant: { S: "t" } } },
      correlation_id: { S: "c-1" },
      attempt_count: { N: "0" },
      retry_type: { S: "Notify" },
    });
    assert.equal(Date.parse(retry_at!.S!) - Date.parse(created_at!.S!), 15 * 60_000);
  });

  test("D3 text and bytes come back untouched", async () => {
    for (const payload of ["", "no JSON {", "Käse 🧀", Buffer.from([0, 255, 128]), Buffer.alloc(0)]) {
      const record = await written({ payload });
      assert.deepEqual(record.payload, Buffer.from(payload as string));
      assert.equal(record.fault, null);
    }
  });

  test("D3 one id is written once, whatever else is written with it", async () => {
    const id = "once-1";
    await outbox.write({ id, type: "Notify", payload: "first" });
    assert.deepEqual(await outbox.write({ id, type: "Notify", payload: "second" }), [id]);
    const ids = await outbox.write([
      { id, type: "Notify", payload: "third" },
      { id: "once-2", type: "Notify", payload: "new" },
    ]);
    assert.deepEqual(ids, [id, "once-2"]);
    const read = await outbox.read(ids);
    assert.deepEqual([...read.values()].map(({ payload }) => payload.toString()).sort(), ["first", "new"]);
  });

  test("D3 an intent takes effect together with the application's own writes, or not at all", async () => {
    const order = (id: string, ConditionExpression?: string) => ({
      Put: { TableName: "outbox-dead-letters", Item: { id: { S: id } }, ConditionExpression },
    });
    const commit = (TransactItems: ConstructorParameters<typeof TransactWriteItemsCommand>[0]["TransactItems"]) =>
      client.send(new TransactWriteItemsCommand({ TransactItems }));
    await commit([order("order-1"), ...outbox.intend({ id: "of-order-1", type: "Notify", payload: "{}" })]);
    const refused = [
      [order("order-1", "attribute_not_exists(id)"), ...outbox.intend({ id: "lost", type: "Notify", payload: "{}" })],
      [order("order-2"), ...outbox.intend({ id: "of-order-1", type: "Notify", payload: "{}" })],
    ];
    for (const items of refused) await assert.rejects(commit(items), { name: "TransactionCanceledException" });
    assert.deepEqual([...(await outbox.read(["of-order-1", "lost"])).keys()], ["of-order-1"]);
    assert.equal(await itemOf("order-2", "outbox-dead-letters"), undefined);
  });

  test("D3 an intent that DynamoDB would refuse later is refused at once, with the reason", async () => {
    assert.throws(() => outbox.intend({ type: "Notify", payload: "x".repeat(380_000) }), isCode("EVENT_TOO_LARGE"));
    const [id] = await outbox.write({ type: "Notify", payload: "x".repeat(370_000) });
    assert.equal((await outbox.read([id!])).get(id!)?.payload.length, 370_000);
    const many = Array.from({ length: 101 }, () => ({ type: "Notify", payload: "{}" }));
    assert.throws(() => outbox.intend(many), isCode("EVENT_INVALID"));
  });
});

describe("the state of intents", () => {
  test("D3 many are read at once; those that are not there are left out", async () => {
    const intents = Array.from({ length: 100 }, (_, n) => ({ id: `many-${n}`, type: "Notify", payload: "{}" }));
    await outbox.write(intents);
    const ids = [...intents, ...intents].map(({ id }) => id);
    const found = await outbox.read([...ids, ...Array.from({ length: 60 }, (_, n) => `none-${n}`)]);
    assert.equal(found.size, 100);
  });

  test("D4 delivered_at is set once, and takes the intent out of the index", async () => {
    const { id } = await written();
    const at = Date.UTC(2030, 0, 1);
    assert.equal(await outbox.markDelivered(id, at), "written");
    assert.equal(await outbox.markDelivered(id, at + 1), "gone");
    assert.equal(await outbox.markDelivered("never-written", at), "gone");
    const { delivered_at, expires_at, retry_at, retry_type } = (await itemOf(id))!;
    assert.deepEqual([delivered_at, retry_at, retry_type], [{ S: "2030-01-01T00:00:00.000Z" }, undefined, undefined]);
    assert.equal(Number(expires_at!.N), Date.UTC(2030, 0, 31) / 1_000);
    assert.equal(await itemOf("never-written"), undefined);
  });

  test("D3 a delivered_at that is null counts as none", async () => {
    const intent = { M: { type: { S: "Notify" }, payload: { S: "{}" } } };
    await put({ id: { S: "with-null" }, intent, delivered_at: { NULL: true }, key: { NULL: true } });
    const record = (await outbox.read(["with-null"])).get("with-null")!;
    assert.deepEqual([record.deliveredAt, record.key, record.fault], [null, null, null]);
    assert.equal(await outbox.markDelivered("with-null", Date.now()), "written");
  });

  test("D5 a failure counts, with its reason and the time of the next try; the history is bounded", async () => {
    const { id } = await written({ type: "Fails" });
    const retryAt = Date.now() + 30_000;
    for (let attempt = 1; attempt <= 12; attempt += 1) {
      const record = (await outbox.read([id])).get(id)!;
      assert.equal(record.attemptCount, attempt - 1);
      assert.equal(await outbox.recordFailure(record, failure(`reason ${attempt}`), retryAt), "written");
    }
    const record = (await outbox.read([id])).get(id)!;
    assert.deepEqual([record.attemptCount, record.lastError], [12, "reason 12"]);
    assert.deepEqual(
      record.errors.map(({ attempt }) => attempt),
      [3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    );
    assert.equal(Date.parse(record.retryAt!), retryAt);
    await outbox.markDelivered(id, Date.now());
    assert.equal(await outbox.recordFailure(record, failure("too late"), retryAt), "gone");
  });

  test("D5 an item that has no room for its history keeps the count and the reason, cut short", async () => {
    const payload = { S: "x".repeat(409_000) };
    await put({ id: { S: "full" }, intent: { M: { type: { S: "Notify" }, payload } } });
    const record = (await outbox.read(["full"])).get("full")!;
    assert.equal(await outbox.recordFailure(record, failure("y".repeat(1_000)), Date.now()), "written");
    const after = (await outbox.read(["full"])).get("full")!;
    assert.deepEqual([after.attemptCount, after.lastError?.length, after.errors], [1, 100, []]);
  });

  test("D5 a due intent is claimed once, by the first caller", async () => {
    const ids = await outbox.write(Array.from({ length: 10 }, () => ({ type: "Due", payload: "{}" })));
    const nowIso = new Date(Date.now() + 16 * 60_000).toISOString();
    assert.deepEqual(await outbox.due("Due", new Date().toISOString(), 100), []);
    assert.deepEqual([...(await outbox.due("Due", nowIso, 100))].sort(), [...ids].sort());
    assert.equal((await outbox.due("Due", nowIso, 3)).length, 3);
    const untilIso = new Date(Date.now() + 20 * 60_000).toISOString();
    const claim = { nowIso, dueBeforeIso: nowIso, untilIso };
    const claims = await Promise.all([1, 2, 3].map(() => outbox.claim(ids, claim)));
    assert.equal(claims.flat().length, 10);
    assert.deepEqual(new Set(claims.flat().map((record) => record.claims)), new Set([1]));
    assert.deepEqual(await outbox.due("Due", nowIso, 100), []);
    await outbox.release(ids.slice(0, 4));
    assert.equal((await outbox.due("Due", nowIso, 100)).length, 4);
  });

  for (const [what, item, expected] of [
    ["no intent", {}, "`intent`"],
    ["an intent that is a text", { intent: { S: "Notify" } }, "`intent`"],
    ["no payload", { intent: { M: { type: { S: "Notify" } } } }, "`intent.payload`"],
    ["a payload that is a map", { intent: { M: { type: { S: "N" }, payload: { M: {} } } } }, "`intent.payload`"],
    ["a key that is a number", { key: { N: "1" } }, "`key`"],
    ["headers that are no texts", { headers: { M: { a: { N: "1" } } } }, "`headers`"],
  ] satisfies [string, DynamoDbItem, string][]) {
    test(`D3 an item with ${what} is read, and says what is wrong with it`, async () => {
      const id = `odd ${what}`;
      await put({ id: { S: id }, attempt_count: { S: "none" }, errors: { S: "none" }, ...item });
      const record = (await outbox.read([id])).get(id)!;
      assert.ok(record.fault?.includes(expected), record.fault ?? "no fault");
      assert.equal(record.attemptCount, 0);
    });
  }
});

describe("dead letters", () => {
  test("D5 a dead letter is the full record with its errors, and is out of the outbox", async () => {
    const id = "dead-1";
    await outbox.write({ id, type: "Dies", payload: "the payload", key: "k" });
    const extra = { ":it": { S: "the application's own" } };
    const update = { TableName: "outbox", Key: { id: { S: id } }, UpdateExpression: "SET extra = :it" };
    await client.send(new UpdateItemCommand({ ...update, ExpressionAttributeValues: extra }));
    const first = (await outbox.read([id])).get(id)!;
    await outbox.recordFailure(first, failure("first"), Date.now());
    const second = (await outbox.read([id])).get(id)!;
    assert.equal(await outbox.deadLetter(second, failure("second")), "written");
    assert.equal(await itemOf(id), undefined);
    const letter = (await outbox.deadLetterOf(id))!;
    assert.deepEqual(
      letter.errors.map(({ attempt, reason }) => [attempt, reason]),
      [
        [1, "first"],
        [2, "second"],
      ],
    );
    assert.deepEqual([letter.payload.toString(), letter.key, letter.attemptCount], ["the payload", "k", 2]);
    assert.deepEqual([letter.item.extra, letter.retryAt], [{ S: "the application's own" }, null]);
    assert.equal(await outbox.deadLetter(second, failure("again")), "gone");
    assert.equal((await outbox.deadLetterOf(id))!.lastError, "second");
  });

  test("D4 what was delivered meanwhile never becomes a dead letter", async () => {
    const record = await written();
    await outbox.markDelivered(record.id, Date.now());
    assert.equal(await outbox.deadLetter(record, failure("late")), "gone");
    assert.equal(await outbox.deadLetterOf(record.id), null);
  });

  test("D5 they are listed and counted by type, the oldest first", async () => {
    for (let n = 0; n < 3; n += 1) {
      const record = await written({ type: "Listed", payload: String(n) });
      await outbox.deadLetter(record, { at: Date.now() + n, reason: "x" });
    }
    const listed = await outbox.deadLetters({ type: "Listed" });
    assert.deepEqual(
      listed.map(({ payload }) => payload.toString()),
      ["0", "1", "2"],
    );
    assert.equal((await outbox.deadLetters({ type: "Listed", limit: 2 })).length, 2);
    assert.equal(await outbox.deadLetterDepth("Listed"), 3);
    assert.ok((await outbox.deadLetterDepth()) >= 3);
    assert.ok((await outbox.deadLetters()).some(({ type }) => type === "Listed"));
  });

  test("D5 a replay puts it back with no attempt spent, in one transaction", async () => {
    const record = await written({ type: "Replayed", payload: "p" });
    await outbox.deadLetter(record, failure("x"));
    assert.equal(await outbox.replay(record.id), "replayed");
    assert.equal(await outbox.deadLetterOf(record.id), null);
    const back = (await outbox.read([record.id])).get(record.id)!;
    assert.deepEqual([back.attemptCount, back.payload.toString(), back.errors.length], [0, "p", 1]);
    assert.ok(back.item.replayed_at?.S);
    assert.equal(await outbox.replay(record.id), "missing");
    await outbox.deadLetter(back, failure("y"));
    await outbox.write({ id: record.id, type: "Replayed", payload: "another" });
    assert.equal(await outbox.replay(record.id), "present");
    assert.equal((await outbox.read([record.id])).get(record.id)!.payload.toString(), "another");
  });
});

describe("when DynamoDB is not as expected", () => {
  test("D3 a missing table is reported by name", async () => {
    const other = dynamodbOutbox({ client, table: "nowhere" });
    await assert.rejects(
      other.read(["x"]),
      (error) => isRelayError(error, "TABLE_MISSING") && /nowhere/.test(error.message),
    );
    await assert.rejects(other.write({ type: "N", payload: "" }), isCode("TABLE_MISSING"));
  });

  test("D3 what is in the outbox survives a kill of the server; meanwhile it is unreachable", async () => {
    const record = await written({ payload: "kept" });
    const own = dynamodbOutbox({ region: REGION, endpoint: server.endpoint, credentials });
    await server.kill();
    await assert.rejects(own.markDelivered(record.id, Date.now()), isCode("DATABASE_UNREACHABLE"));
    await server.restart();
    assert.equal((await own.read([record.id])).get(record.id)?.payload.toString(), "kept");
    await own.close();
  });
});
