import assert from "node:assert/strict";
import { test } from "node:test";
import { isRelayError } from "../core/errors.ts";
import type { OutboxEvent } from "../core/event.ts";
import { defineIntentRelay, type Intent, type IntentMessage, type IntentRelay, intentRoute } from "./intent-relay.ts";
import { messageOf } from "./routes.ts";

const EVENT: OutboxEvent = {
  id: "7f",
  type: "NotifyUser",
  key: "user-1",
  payload: Buffer.from('{"userId":"u1"}'),
  headers: {},
  correlationId: "c1",
  createdAt: "2026-01-01T00:00:00Z",
};

const target = { url: "kafka://broker:9092", topic: "user-notifications" };

function sent(translate: (intent: Intent) => unknown, event = EVENT, more: Partial<IntentRelay> = {}) {
  const relay = defineIntentRelay({
    type: "NotifyUser",
    target,
    translate: translate as (intent: Intent) => IntentMessage,
    ...more,
  });
  return messageOf(intentRoute(relay, "kafka"), event);
}

function problemOf(relay: unknown): string {
  try {
    defineIntentRelay(relay as IntentRelay);
  } catch (error) {
    assert.ok(isRelayError(error, "CONFIG_INVALID"));
    return error.message;
  }
  return assert.fail("the relay was accepted");
}

test("D1 D3 a relay makes one message of one intent, its key in the metadata and in the body", () => {
  const message = sent((intent) => ({ body: { user: intent.json<{ userId: string }>().userId } }));
  assert.deepEqual(JSON.parse(message.payload.toString()), { user: "u1", idempotency_key: "7f" });
  assert.deepEqual([message.topic, message.key], ["user-notifications", "user-1"]);
  assert.deepEqual(message.headers, {
    "event-id": "7f",
    "correlation-id": "c1",
    "created-at": "2026-01-01T00:00:00.000Z",
    "content-type": "application/json",
  });
});

test("D3 the key can be placed by the translation, but neither changed nor stripped", () => {
  const placed = sent((intent) => ({ body: { idempotency_key: intent.idempotencyKey, at: 1 } }));
  assert.equal(placed.payload.toString(), '{"idempotency_key":"7f","at":1}');
  const undefinedKey = sent(() => ({ body: { idempotency_key: undefined, at: 1 }, headers: { "event-id": "other" } }));
  assert.deepEqual(JSON.parse(undefinedKey.payload.toString()), { at: 1, idempotency_key: "7f" });
  assert.equal(undefinedKey.headers["event-id"], "7f");
  for (const key of ["other", "", null, 7]) {
    assert.throws(() => sent(() => ({ body: { idempotency_key: key } })), /must be the intent's id, 7f/);
  }
});

test("text, bytes and lists are sent as the translation wrote them", () => {
  assert.equal(sent(() => ({ body: "plain" })).payload.toString(), "plain");
  assert.deepEqual(sent(() => ({ body: Buffer.from([0, 255]) })).payload, Buffer.from([0, 255]));
  assert.equal(sent(() => ({ body: [1, 2] })).payload.toString(), "[1,2]");
  assert.equal(sent(() => ({ body: "plain" })).headers["content-type"], undefined);
});

test("a translation can choose key, topic and headers; its content type wins over the row's", () => {
  const event = { ...EVENT, headers: { "Content-Type": "application/avro", tenant: "t" } };
  const own = sent(() => ({ body: {}, key: null, topic: "other", headers: { "CONTENT-TYPE": "x/y" } }), event);
  assert.deepEqual([own.topic, own.key, own.headers["CONTENT-TYPE"]], ["other", null, "x/y"]);
  const { headers } = sent(() => ({ body: {} }), event);
  assert.deepEqual(
    [headers["Content-Type"], headers["content-type"], headers.tenant],
    ["application/json", undefined, "t"],
  );
  const untitled = sent(() => ({ body: {} }), EVENT, { target: { destination: "main" } });
  assert.equal(untitled.topic, "NotifyUser");
});

test("the translation runs once for a message", () => {
  let runs = 0;
  sent(() => ({ body: { run: ++runs } }));
  assert.equal(runs, 1);
});

test("a translation that returns an invalid message is refused with the reason", () => {
  const cases: readonly [unknown, RegExp][] = [
    [undefined, /returned undefined/],
    [null, /returned null/],
    [{}, /no body/],
    [{ body: 5 }, /no body/],
    [Promise.resolve({ body: {} }), /must be synchronous/],
    [{ body: {}, topic: "" }, /topic/],
    [{ body: {}, key: 1 }, /key/],
    [{ body: {}, headers: { a: 1 } }, /header "a"/],
    [{ body: Object.assign([], { toJSON: () => undefined }) }, /cannot be written as JSON/],
  ];
  for (const [returned, expected] of cases) assert.throws(() => sent(() => returned), expected);
  assert.throws(() => sent((intent) => intent.json(), { ...EVENT, payload: Buffer.from("{") }), SyntaxError);
});

test("D6 a relay that gets another type refuses it with its own error code", () => {
  assert.throws(
    () => sent(() => ({ body: {} }), { ...EVENT, type: "Other" }),
    (error) => isRelayError(error, "RELAY_MISMATCH") && /"NotifyUser" was given "Other"/.test(error.message),
  );
});

test("D1 a relay without exactly one type, a target or a translation is refused", () => {
  const translate = () => ({ body: {} });
  assert.match(problemOf(undefined), /no `type`/);
  assert.match(problemOf({ target, translate }), /no `type`/);
  assert.match(problemOf({ type: "Order*", target, translate }), /exactly one intent type/);
  assert.match(problemOf({ type: "A", target }), /no function `translate`/);
  assert.match(problemOf({ type: "A", translate }), /needs one target/);
  assert.match(problemOf({ type: "A", target: { url: undefined }, translate }), /environment variable empty/);
  assert.match(problemOf({ type: "A", target: { url: "a:", destination: "b" }, translate }), /needs one target/);
  assert.match(problemOf({ type: "A", target: { url: "a:", topic: "" }, translate }), /topic/);
});
