import assert from "node:assert/strict";
import { test } from "node:test";
import { Reader, readRecord } from "@platformatic/kafka";
import fc from "fast-check";
import { message } from "./kafka-fixture.test.ts";
import {
  faultOf,
  type Item,
  measure,
  recordBytesMax,
  recordsBytes,
  type Sendable,
  writeRecords,
} from "./kafka-records.ts";

function itemsOf(messages: readonly Sendable[]): Item[] {
  return messages.map((it, index) => ({ index, message: it, contentBytes: measure(it) }));
}

/** Reads what was written with the client's own reader. */
function writtenAndRead(messages: readonly Sendable[]) {
  const items = itemsOf(messages);
  const bytes = recordsBytes(items);
  const buffer = Buffer.alloc(bytes + 8, 0xee);
  assert.equal(writeRecords(buffer, 0, items), bytes, "the measured size is the written one");
  assert.equal(buffer.readBigUInt64BE(bytes), 0xeeeeeeeeeeeeeeeen, "nothing is written behind it");
  const maxBytes = items.reduce((sum, item) => sum + recordBytesMax(item), 0);
  assert.ok(maxBytes >= bytes, "the estimate is never too small");
  const reader = Reader.from(buffer.subarray(0, bytes));
  return items.map((_, offset) => {
    const record = readRecord(reader);
    assert.deepEqual([record.offsetDelta, record.attributes], [offset, 0]);
    const headers = (record.headers as [Buffer, Buffer][]).map(([name, value]) => [String(name), String(value)]);
    return { key: record.key, value: record.value, headers };
  });
}

test("A16 B6 what is written is what is read: any key, any headers, any bytes", () => {
  const text = fc.oneof(fc.string({ unit: "grapheme", maxLength: 80 }), fc.string({ maxLength: 200 }));
  const sendable = fc.record({
    topic: fc.constant("orders"),
    key: fc.option(text),
    headers: fc.dictionary(text, text, { noNullPrototype: true }),
    payload: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  });
  fc.assert(
    fc.property(fc.array(sendable, { minLength: 1, maxLength: 200 }), (messages) => {
      for (const [at, { key, value, headers }] of writtenAndRead(messages).entries()) {
        const expected = messages[at]!;
        assert.equal(
          key?.toString("hex"),
          expected.key === null ? undefined : Buffer.from(expected.key).toString("hex"),
        );
        assert.equal(value?.toString("hex"), expected.payload.toString("hex"));
        assert.deepEqual(headers, Object.entries(expected.headers));
      }
    }),
    { numRuns: 200 },
  );
});

test("sizes are right where lengths grow by a byte", () => {
  for (const length of [63, 64, 8_191, 8_192, 1_048_575, 1_048_576]) {
    const [record] = writtenAndRead([
      message("a1", { payload: Buffer.alloc(length, 1), headers: { h: "x".repeat(64) } }),
    ]);
    assert.equal(record?.value?.length, length);
  }
  assert.equal(writtenAndRead(Array.from({ length: 8_200 }, () => message("a1"))).length, 8_200);
});

test("a text that has no bytes of its own is refused instead of being changed", () => {
  const faults: readonly (readonly [Sendable, RegExp])[] = [
    [message("a1", { key: "k\ud800" }), /^the key is not valid Unicode text$/],
    [message("a1", { headers: { tenant: "\udc00" } }), /^the header "tenant" is not/],
    [message("a1", { headers: { "\ud800": "x" } }), /^the header .* is not/],
    [message("a1", { headers: { count: 1 as unknown as string } }), /^the header "count" is not/],
  ];
  for (const [bad, expected] of faults) {
    assert.equal(measure(bad), -1);
    assert.match(faultOf(bad) ?? "", expected);
  }
});

test("line breaks, empty names and empty values are legal in headers, an empty key is no missing key", () => {
  const headers = { "": "", a: "one\r\ntwo", "x\ny": "\u0000" };
  const [record] = writtenAndRead([message("a1", { headers, key: "" })]);
  assert.deepEqual(record?.headers, Object.entries({ ...headers, "event-id": "a1" }));
  assert.equal(record?.key?.length, 0);
  assert.equal(faultOf(message("a1", { headers, key: "" })), null);
});

test("H1 no event is written to a ledger, whichever relay's it is", () => {
  assert.match(faultOf(message("a1", { topic: "outbox-relay.ledger.billing" })) ?? "", /is a relay's ledger/);
  assert.equal(faultOf(message("a1", { topic: "outbox-relay.ledgers" })), null);
});

test("G2 an illegal topic name is a fault of the message", () => {
  assert.match(faultOf(message("a1", { topic: "no spaces" })) ?? "", /contains " "/);
});
