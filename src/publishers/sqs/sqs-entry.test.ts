import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { EventHeaders, Message } from "../../core/event.ts";
import { sqsEntry } from "./sqs-entry.ts";

const ID = "0b9c1f8e-6d5a-4c3b-9a2f-1e0d7c6b5a49";

function message(
  changes: { key?: string | null; id?: string; payload?: Buffer; headers?: EventHeaders } = {},
): Message {
  const { headers = {}, id = ID, key = "k-1", payload = Buffer.from("{}") } = changes;
  const event = { id, type: "order.placed", key, payload, headers: {}, correlationId: null, createdAt: null };
  return { event, topic: "order.placed", key, payload, headers: { ...headers, "event-id": id } };
}

function attributesOf(of: Message): Record<string, string | undefined> {
  const { attributes } = sqsEntry(of, true);
  return Object.fromEntries(Object.entries(attributes).map(([name, { StringValue }]) => [name, StringValue]));
}

describe("an event as a message of SQS", () => {
  test("B6 D8 headers, topic and key are attributes; group is the key, deduplication id the event's id", () => {
    const entry = sqsEntry(message({ headers: { tenant: "t" } }), true);
    assert.deepEqual([entry.body, entry.groupId, entry.dedupeId], ["{}", "k-1", ID]);
    assert.deepEqual(attributesOf(message({ headers: { tenant: "t" } })), {
      tenant: "t",
      "event-id": ID,
      topic: "order.placed",
      "partition-key": "k-1",
    });
  });

  test("D8 a standard queue gets neither group nor deduplication id", () => {
    const { dedupeId, groupId } = sqsEntry(message(), false);
    assert.deepEqual([groupId, dedupeId], [null, null]);
  });

  test("A3 an event without a key is a group of its own, and has no key attribute", () => {
    assert.equal(sqsEntry(message({ key: null }), true).groupId, ID);
    assert.equal("partition-key" in attributesOf(message({ key: null })), false);
  });

  test("A3 D8 keys and ids that SQS does not take are digests, each its own", () => {
    const groups = ["käse", "with space", "x".repeat(129)].map((key) => sqsEntry(message({ key }), true).groupId!);
    for (const group of groups) assert.match(group, /^[0-9a-f]{64}$/);
    assert.equal(new Set(groups).size, 3);
    assert.match(sqsEntry(message({ id: "x".repeat(200) }), true).dedupeId!, /^[0-9a-f]{64}$/);
  });

  for (const [what, headers] of [
    ["more than ten", Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`h${n}`, "v"]))],
    ["an empty value", { note: "" }],
    ["a name with a space", { "a b": "1" }],
    ["a name of Amazon's", { "AWS.trace": "1" }],
    ["a name that we use ourselves", { headers: "1" }],
    ["a character that is none of XML", { note: "\u0001\uffff" }],
  ] as const) {
    test(`B6 headers with ${what} all travel as JSON in one attribute`, () => {
      const { headers: packed = "", ...rest } = attributesOf(message({ headers }));
      const expected = { ...headers, "event-id": ID, topic: "order.placed", "partition-key": "k-1" };
      assert.deepEqual(JSON.parse(packed), expected);
      assert.deepEqual(rest, { "event-id": ID });
      assert.match(packed, /^[\u0020-\ufffd]*$/);
    });
  }

  for (const [payload, body, encoding] of [
    [Buffer.from("Käse 🧀\n\t"), "Käse 🧀\n\t", undefined],
    [Buffer.from([0xff, 0x00]), "/wA=", "base64"],
    [Buffer.from("a\u0001b"), "YQFi", "base64"],
    [Buffer.from("\uffff"), "77+/", "base64"],
    [Buffer.alloc(0), "-", "empty"],
  ] as const) {
    test(`B6 the payload ${JSON.stringify(payload.toString("latin1"))} goes as ${encoding ?? "text"}`, () => {
      assert.equal(sqsEntry(message({ payload }), true).body, body);
      assert.equal(attributesOf(message({ payload }))["payload-encoding"], encoding);
    });
  }
});
