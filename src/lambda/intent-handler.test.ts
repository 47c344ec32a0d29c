import assert from "node:assert/strict";
import { after, before, beforeEach, describe, mock, test } from "node:test";
import { DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { DynamoDBStreams } from "@aws-sdk/client-dynamodb-streams";
import { type DynamoDb, startDynamoDb } from "../../test/servers/dynamodb.ts";
import { type HttpReceiver, startHttpReceiver } from "../../test/servers/http-receiver.ts";
import { assertWithin } from "../../test/servers/pace.ts";
import { startTcpProxy, type TcpProxy } from "../../test/servers/tcp-proxy.ts";
import { RelayError } from "../core/errors.ts";
import { scheduledRetry } from "../core/retry-policy.ts";
import { type DynamoDbOutbox, dynamodbOutbox } from "../dynamodb/dynamodb-outbox.ts";
import type { DynamoDbItem, NewIntent } from "../dynamodb/intent-record.ts";
import { createTables } from "../dynamodb/tables.ts";
import { insertRecord, lambdaRecord } from "../dynamodb-runner/lambda-record.ts";
import type { TechnicalEvent, TechnicalEventName } from "../ports/technical-events.ts";
import { defineIntentRelay, type IntentRelay } from "../routing/intent-relay.ts";
import { matchesFilter, streamFilter } from "./filter-pattern.ts";
import { type IntentHandler, type IntentHandlerOptions, intentHandler } from "./intent-handler.ts";
import type { StreamRecord } from "./lambda-events.ts";

const place = { region: "eu-central-1", credentials: { accessKeyId: "local", secretAccessKey: "local" } };
const TYPE = "NotifyUser";
const SWEEP = { "outbox-relay": "sweep" } as const;

let dynamodb: DynamoDb;
let proxy: TcpProxy;
let receiver: HttpReceiver;
let client: DynamoDBClient;
let outbox: DynamoDbOutbox;
let tables = 0;
/** How the receiver behaves towards an intent; see its process. */
const manners = new Map<string, string>();
const handlers: IntentHandler[] = [];
let events: TechnicalEvent[] = [];
const lines = mock.method(console, "log", () => {});

before(async () => {
  [dynamodb, receiver] = await Promise.all([startDynamoDb(), startHttpReceiver()]);
  proxy = await startTcpProxy(dynamodb.port);
  client = new DynamoDBClient({ ...place, endpoint: `http://127.0.0.1:${proxy.port}` });
});

beforeEach(async () => {
  tables += 1;
  const names = { table: `outbox-${tables}`, deadLetterTable: `dead-${tables}` };
  await createTables(client, names);
  outbox = dynamodbOutbox({ client, ...names });
  events = [];
  lines.mock.resetCalls();
});

after(async () => {
  lines.mock.restore();
  for (const handler of handlers) await handler.close();
  client?.destroy();
  await proxy?.[Symbol.asyncDispose]();
  await receiver?.[Symbol.asyncDispose]();
  await dynamodb?.[Symbol.asyncDispose]();
});

function relay(changes: Partial<IntentRelay> = {}): IntentRelay {
  return defineIntentRelay({
    type: TYPE,
    target: { url: `${receiver.origin}/notify` },
    translate: (intent) => {
      const manner = manners.get(intent.id);
      return { body: { user: intent.json() }, headers: manner === undefined ? {} : { "x-manner": manner } };
    },
    ...changes,
  });
}

function handlerOf(changes: Partial<IntentRelay> = {}, options: IntentHandlerOptions = {}): IntentHandler {
  const report = (event: TechnicalEvent) => void events.push(event);
  const handler = intentHandler(relay(changes), { outbox, env: {}, report, ...options });
  handlers.push(handler);
  return handler;
}

const context = (leftMs = 30_000) => ({ getRemainingTimeInMillis: () => leftMs });

let numbers = 0;
function inserted(item: DynamoDbItem): StreamRecord {
  numbers += 1;
  return insertRecord(item, "arn:aws:dynamodb:stream", String(numbers).padStart(21, "0"));
}

/** Writes intents and returns what the stream would say of them. */
async function intend(...intents: readonly (Partial<NewIntent> & { manner?: string })[]): Promise<StreamRecord[]> {
  const ids = await outbox.write(intents.map(({ manner, ...intent }) => ({ type: TYPE, payload: "7", ...intent })));
  for (const [index, id] of ids.entries()) {
    const { manner } = intents[index]!;
    if (manner !== undefined) manners.set(id, manner);
  }
  const read = await outbox.read(ids);
  return ids.map((id) => inserted(read.get(id)!.item));
}

const idOf = (record: StreamRecord) => String(record.dynamodb?.Keys?.id?.S);
const failuresOf = (records: readonly StreamRecord[]) => ({
  batchItemFailures: records.map(({ dynamodb: change }) => ({ itemIdentifier: change!.SequenceNumber! })),
});
const none = failuresOf([]);
const reported = (name: TechnicalEventName) => events.filter((event) => event.name === name);

/** The ids that arrived, of these, in their order. */
function arrived(records: readonly StreamRecord[]): string[] {
  const ids = new Set(records.map(idOf));
  return receiver
    .arrivals()
    .map(({ headers }) => headers["idempotency-key"] ?? "")
    .filter((id) => ids.has(id));
}

async function stateOf(record: StreamRecord) {
  return (await outbox.read([idOf(record)])).get(idOf(record)) ?? null;
}

describe("records of the stream are relayed", () => {
  test("D2 D3 D4 D6 D8 each intent arrives with its key, is marked after the answer, and is reported", async () => {
    const records = await intend({ key: "k", correlationId: "c-1" }, { payload: "8" });
    assert.deepEqual(await handlerOf()({ Records: records }, context()), none);
    assert.deepEqual(arrived(records).sort(), records.map(idOf).sort());
    const id = idOf(records[0]!);
    const arrival = receiver.arrivals().find(({ headers }) => headers["idempotency-key"] === id)!;
    assert.deepEqual(JSON.parse(arrival.body.toString()), { user: 7, idempotency_key: id });
    assert.deepEqual([arrival.headers["event-id"], arrival.headers["correlation-id"]], [id, "c-1"]);
    assert.ok((await stateOf(records[0]!))!.deliveredAt);
    const relayed = reported("IntentRelayed").find((event) => "recordId" in event && event.recordId === id);
    const { durationMs, timestamp, ...rest } = relayed as Extract<TechnicalEvent, { name: "IntentRelayed" }>;
    const about = { recordId: id, intentType: TYPE, target: TYPE, key: "k", correlationId: "c-1", attempt: 1 };
    assert.deepEqual(rest, { name: "IntentRelayed", pipeline: `${outbox.table}->http`, ...about });
    assert.ok(durationMs >= 0 && timestamp > 0);
  });

  test("D2 the records of the real stream pass the filter of their type and nothing else does", async () => {
    const [first] = await intend({ payload: Buffer.from("8") }, { type: "Other" });
    await handlerOf()({ Records: [first!] }, context());
    const streams = new DynamoDBStreams({ ...place, endpoint: dynamodb.endpoint });
    const { Streams = [] } = await streams.listStreams({ TableName: outbox.table });
    const StreamArn = Streams[0]!.StreamArn!;
    const { StreamDescription } = await streams.describeStream({ StreamArn });
    const { ShardId } = StreamDescription!.Shards![0]!;
    const at = { StreamArn, ShardId, ShardIteratorType: "TRIM_HORIZON" } as const;
    const { ShardIterator } = await streams.getShardIterator(at);
    const { Records = [] } = await streams.getRecords({ ShardIterator });
    streams.destroy();
    const records = Records.map((record) => lambdaRecord(record, StreamArn));
    assert.deepEqual(records.map(({ eventName }) => eventName).sort(), ["INSERT", "INSERT", "MODIFY"]);
    const mine = records.filter((record) => matchesFilter(streamFilter(TYPE), record));
    assert.deepEqual(mine.map(idOf), [idOf(first!)]);
  });

  test("D4 a record that comes twice is sent once", async () => {
    const records = await intend({}, {});
    const handler = handlerOf();
    await handler({ Records: records }, context());
    assert.deepEqual(await handler({ Records: [...records, ...records] }, context()), none);
    assert.equal(arrived(records).length, 2);
  });

  test("D2 changes and removals are ignored; a deleted intent is skipped", async () => {
    const [record] = await intend({});
    const changed = { ...record!, eventName: "MODIFY" };
    const gone = inserted({ id: { S: "gone" }, intent: { M: { type: { S: TYPE }, payload: { S: "1" } } } });
    assert.deepEqual(await handlerOf()({ Records: [changed, gone] }, context()), none);
    assert.deepEqual([arrived([record!, gone]), events], [[], []]);
  });

  test("D2 D6 a record of another type or shape is reported and does not block the others", async () => {
    const put = (Item: DynamoDbItem) => client.send(new PutItemCommand({ TableName: outbox.table, Item }));
    const odd: DynamoDbItem = { id: { S: `odd-${tables}` }, note: { S: "no intent" } };
    await put(odd);
    const [right, other] = await intend({}, { type: "Other" });
    const noId = { eventName: "INSERT", dynamodb: { NewImage: { note: { S: "x" } }, SequenceNumber: "1" } };
    const Records = [noId, {}, other!, inserted(odd), right!];
    assert.deepEqual(await handlerOf()({ Records }, context()), none);
    assert.deepEqual(arrived([right!, other!]), [idOf(right!)]);
    const mismatches = reported("RelayMismatch").map((event) => "recordId" in event && event.recordId);
    assert.deepEqual(mismatches, [null, null, idOf(other!)]);
    assert.equal((await stateOf(other!))!.attemptCount, 0);
    const letter = (await outbox.deadLetterOf(odd.id!.S!))!;
    assert.match(letter.lastError!, /`intent` is not a map .*EVENT_UNREADABLE/);
    assert.deepEqual(letter.item.note, { S: "no intent" });
  });

  test("F2 a failed intent keeps its key's later ones neither back nor out of order", async () => {
    const key = { key: "k" };
    const records = await intend({ ...key, manner: "status:503" }, key, key, key);
    assert.deepEqual(await handlerOf()({ Records: records }, context()), none);
    assert.deepEqual(arrived(records), records.slice(1).map(idOf));
  });
});

describe("what fails", () => {
  test("D5 D6 it is written down with its error and the time of the next try, and blocks nothing", async () => {
    const [bad, good] = await intend({ manner: "status:500" }, {});
    const before = Date.now();
    const handler = handlerOf();
    assert.deepEqual(await handler({ Records: [bad!, good!] }, context()), none);
    const state = (await stateOf(bad!))!;
    assert.deepEqual([state.attemptCount, state.deliveredAt], [1, null]);
    assert.match(state.lastError!, /500/);
    const waitMs = Date.parse(state.retryAt!) - before;
    assert.ok(waitMs >= 30_000 && waitMs < 60_000, `${waitMs}`);
    const [failed] = reported("IntentRelayFailed") as Extract<TechnicalEvent, { name: "IntentRelayFailed" }>[];
    assert.deepEqual([failed!.recordId, failed!.attempt, failed!.retryInMs], [idOf(bad!), 1, 30_000]);
    // From now on only the sweep sends it, however often the stream delivers it.
    events = [];
    await handler({ Records: [bad!] }, context());
    await handler(SWEEP, context());
    assert.deepEqual(events, []);
  });

  test("D5 D10 the schedule ends with a dead letter, which nothing tries again; a replay does", async () => {
    const [record] = await intend({ manner: "status:500", key: "k" });
    const handler = handlerOf({ retry: scheduledRetry([0, 0]) });
    await handler({ Records: [record!] }, context());
    await handler(SWEEP, context());
    await handler(SWEEP, context());
    assert.deepEqual(
      reported("IntentRelayFailed").map((event) => "attempt" in event && event.attempt),
      [1, 2, 3],
    );
    const letter = (await outbox.deadLetterOf(idOf(record!)))!;
    assert.deepEqual(
      letter.errors.map(({ attempt }) => attempt),
      [1, 2, 3],
    );
    assert.deepEqual([letter.attemptCount, letter.payload.toString(), letter.key], [3, "7", "k"]);
    const [dead] = reported("IntentDeadLettered") as Extract<TechnicalEvent, { name: "IntentDeadLettered" }>[];
    assert.deepEqual([dead!.recordId, dead!.attempt, dead!.errors.length], [idOf(record!), 3, 3]);
    const metrics = lines.mock.calls.map(({ arguments: [line] }) => JSON.parse(String(line)));
    assert.deepEqual(
      metrics.map(({ DeadLetters }) => DeadLetters),
      [0, 1, 1],
    );
    const [{ Dimensions, Namespace }] = metrics[1]._aws.CloudWatchMetrics;
    assert.deepEqual([Namespace, Dimensions, metrics[1].intentType], ["OutboxRelay", [["intentType"]], TYPE]);
    manners.delete(idOf(record!));
    await handler({ Records: [record!] }, context());
    await handler(SWEEP, context());
    assert.deepEqual(arrived([record!]), []);
    assert.equal(await outbox.replay(idOf(record!)), "replayed");
    assert.deepEqual(await handler({ Records: [record!] }, context()), none);
    assert.deepEqual(arrived([record!]), [idOf(record!)]);
    assert.equal(await outbox.deadLetterDepth(TYPE), 0);
  });

  test("D5 what no retry can cure is a dead letter at once: refused, or not to be translated", async () => {
    const records = await intend({ manner: "status:422" }, { payload: "no JSON" }, {});
    assert.deepEqual(await handlerOf()({ Records: records }, context()), none);
    const letters = await Promise.all(records.map((record) => outbox.deadLetterOf(idOf(record))));
    assert.match(letters[0]!.lastError!, /422/);
    assert.match(letters[1]!.lastError!, /could not be turned into a message/);
    assert.deepEqual([letters[2], arrived(records)], [null, [idOf(records[2]!)]]);
  });

  test("D5 a destination that is down costs an attempt each, says so, and blocks nothing", async () => {
    const records = await intend({}, {});
    const handler = handlerOf({ target: { url: "http://127.0.0.1:9/closed" } });
    assert.deepEqual(await handler({ Records: records }, context()), none);
    const failed = reported("IntentRelayFailed") as Extract<TechnicalEvent, { name: "IntentRelayFailed" }>[];
    assert.deepEqual(
      failed.map(({ scope }) => scope),
      ["destination", "destination"],
    );
    for (const record of records) assert.equal((await stateOf(record))!.attemptCount, 1);
  });
});

describe("the response names the records to deliver again", () => {
  test("D4 what was sent and could not be marked comes again; what was marked is not sent twice", async () => {
    const records = await intend({}, {}, {});
    const broken = idOf(records[1]!);
    const markDelivered: DynamoDbOutbox["markDelivered"] = async (id, at) => {
      if (id === broken) throw new RelayError("DATABASE_BUSY", "no capacity");
      return await outbox.markDelivered(id, at);
    };
    const answer = await handlerOf({}, { outbox: { ...outbox, markDelivered } })({ Records: records }, context());
    assert.deepEqual(answer, failuresOf([records[1]!]));
    assert.equal(reported("SettleDelayed").length, 1);
    // AWS delivers that record and everything after it once more.
    assert.deepEqual(await handlerOf()({ Records: records.slice(1) }, context()), none);
    assert.deepEqual(arrived(records).sort(), [...records.map(idOf), broken].sort());
  });

  test("D4 with DynamoDB away nothing is sent and everything comes again", async () => {
    const records = await intend({}, {});
    const handler = handlerOf();
    proxy.refuse(true);
    proxy.cut();
    assert.deepEqual(await handler({ Records: records }, context()), failuresOf(records));
    await assert.rejects(handler(SWEEP, context()), (error) => (error as RelayError).code === "DATABASE_UNREACHABLE");
    proxy.refuse(false);
    assert.deepEqual(arrived(records), []);
    assert.deepEqual(await handler({ Records: records }, context()), none);
    assert.equal(arrived(records).length, 2);
  });

  test("D4 when the time is nearly over, the rest comes again", async () => {
    const records = await intend({ manner: "late:300" }, {}, {});
    const handler = handlerOf({}, { batchSize: 1 });
    assert.deepEqual(await handler({ Records: records }, context(3_000)), failuresOf(records.slice(1)));
    assert.deepEqual(arrived(records), [idOf(records[0]!)]);
  });

  test("D5 a destination that never answers is given up before the function's end, and counted", async () => {
    const [record] = await intend({ manner: "hang" });
    const began = performance.now();
    assert.deepEqual(await handlerOf()({ Records: [record!] }, context(8_000)), none);
    await assertWithin(performance.now() - began, 8_000, "giving it up");
    assert.equal((await stateOf(record!))!.attemptCount, 1);
  });
});

describe("the sweep", () => {
  test("D5 relays what the stream's function never came to, once, however many sweep", async () => {
    const overdue = dynamodbOutbox({ client, ...namesOf(outbox), sweepAfterMs: 0 });
    const ids = await overdue.write(Array.from({ length: 20 }, () => ({ type: TYPE, payload: "7" })));
    const read = await outbox.read(ids);
    const records = ids.map((id) => inserted(read.get(id)!.item));
    const sweeps = [handlerOf(), handlerOf(), handlerOf()].map((handler) =>
      handler({ source: "aws.events" }, context()),
    );
    // And the stream delivers them late.
    const late = handlerOf()({ Records: records }, context());
    assert.deepEqual(await Promise.all([...sweeps, late]), [none, none, none, none]);
    assert.deepEqual(arrived(records).sort(), [...ids].sort());
  });

  test("D5 an intent that kills the function each time becomes a dead letter", async () => {
    const overdue = dynamodbOutbox({ client, ...namesOf(outbox), sweepAfterMs: 0 });
    const [poison, other] = await overdue.write([
      { type: TYPE, payload: "7" },
      { type: TYPE, payload: "7" },
    ]);
    // Nothing is written down when a function dies.
    for (let death = 0; death < 4; death += 1) {
      const nowIso = new Date().toISOString();
      await outbox.claim([poison!], { nowIso, dueBeforeIso: nowIso, untilIso: nowIso });
    }
    await handlerOf()(SWEEP, context());
    assert.match((await outbox.deadLetterOf(poison!))!.lastError!, /died 4 times/);
    assert.ok((await outbox.read([other!])).get(other!)!.deliveredAt);
  });
});

function namesOf({ deadLetterTable, table }: DynamoDbOutbox) {
  return { table, deadLetterTable };
}

describe("a handler that cannot work says so at once", () => {
  for (const [text, changes, env] of [
    ["target.url starts with", { target: { url: "ftp://host" } }, {}],
    ["kafka", { target: { destination: "kafka" } }, {}],
    ["exactly-once", {}, { DELIVERY: "exactly-once" }],
    ['write "skip"', { onExhausted: "park" }, {}],
  ] satisfies [string, Partial<IntentRelay>, Record<string, string>][]) {
    test(`D2 ${JSON.stringify({ ...changes, ...env })} is refused with what to do`, () => {
      const isReported = (error: unknown) => (error as Error).message.includes(text);
      assert.throws(() => intentHandler(relay(changes), { outbox, env }), isReported);
    });
  }

  test("D2 a target that is only named is looked up in the environment", async () => {
    const env = { OUTBOX_DESTINATION: `${receiver.origin}/named` };
    const [record] = await intend({});
    await handlerOf({ target: { destination: "http" } }, { env })({ Records: [record!] }, context());
    assert.equal(receiver.arrivals().at(-1)!.url, "/named");
  });

  test("D2 something else than the stream of this outbox or a schedule is refused", async () => {
    const [record] = await intend({});
    const queued = { Records: [{ ...record!, eventSource: "aws:sqs" }] };
    const elsewhere = { Records: [{ ...record!, eventSourceARN: "arn:aws:dynamodb:eu:1:table/other/stream/2030" }] };
    for (const event of [{}, { Records: "x" }, { source: "aws.s3" }, queued, elsewhere]) {
      await assert.rejects(handlerOf()(event as never, context()), /CONFIG_INVALID/);
    }
  });

  test("D6 by default every technical event is a line of JSON, without passwords; a report that fails disturbs nothing", async () => {
    const [first, second] = await intend({ manner: "status:500" }, {});
    const complaints = mock.method(console, "error", () => {});
    const url = `http://user:secret-word@127.0.0.1:${receiver.port}/notify`;
    const handler = intentHandler(relay({ target: { url } }), { outbox, env: {} });
    await handler({ Records: [first!] }, context());
    const fails = handlerOf({}, { report: () => Promise.reject(new Error("store is down")) });
    assert.deepEqual(await fails({ Records: [second!] }, context()), none);
    complaints.mock.restore();
    await handler.close();
    const [line] = lines.mock.calls.map(({ arguments: [text] }) => String(text));
    assert.deepEqual([JSON.parse(line!).event, JSON.parse(line!).recordId], ["IntentRelayFailed", idOf(first!)]);
    assert.ok(!line!.includes("secret-word"));
    assert.match(String(complaints.mock.calls[0]!.arguments[0]), /store is down/);
    assert.ok((await stateOf(second!))!.deliveredAt);
  });
});
