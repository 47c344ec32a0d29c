import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isRelayError } from "../../../core/errors.ts";
import { typeMatcher } from "../../../core/type-filter.ts";
import { readMessageEvent } from "./message-reader.ts";
import { between, parseLsn, printLsn, readPosition, type WalPosition, writePosition } from "./wal-position.ts";

const LIMITS = { payloadBytesMax: 100, headersMax: 2 };

const at = (lsn: string, mark: number): WalPosition => ({
  segment: { lsn: parseLsn(lsn), timeline: 1, committedAtMs: null },
  mark,
});

describe("places in the write-ahead log", () => {
  test("a place is read as it is printed", () => {
    for (const text of ["0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"]) assert.equal(printLsn(parseLsn(text)), text);
    for (const text of ["", "16", "16/", "1/2/3", "x/1", "123456789/0"])
      assert.throws(() => parseLsn(text), SyntaxError);
  });

  test("F4 D9 a checkpoint knows the rows that were settled ahead of it, and no others", () => {
    const ahead = [at("0/20", 3), at("0/20", 4), at("0/20", 7), at("1/0", 1)];
    const written = writePosition("77", at("0/20", 1), ahead);
    assert.deepEqual(JSON.parse(written).ahead, {
      "0/20": [
        [3, 4],
        [7, 7],
      ],
      "1/0": [[1, 1]],
    });
    const again = readPosition(written);
    assert.deepEqual([again.place, again.system, again.ahead], [at("0/20", 1), "77", ahead]);
  });

  test("what is no checkpoint is LOG_LOST", () => {
    for (const text of ["", "[]", "{}", '{"lsn":"0/1"}', '{"lsn":"0/1","index":-1,"timeline":1,"system":"1"}']) {
      assert.throws(
        () => readPosition(text),
        (error) => isRelayError(error, "LOG_LOST"),
      );
    }
    assert.equal(between(5n, 1).mark, 0);
  });
});

describe("messages of the write-ahead log", () => {
  test("D9 the payload is what stands behind the first line, byte by byte", () => {
    const head = { id: "e1", type: "T", key: 42, headers: { a: 1, b: [true] }, correlationId: "c" };
    const payload = Buffer.from([0, 10, 255, 13, 10]);
    const content = Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), payload]);
    const event = readMessageEvent(content, "0/1:1", LIMITS);
    content.fill(0);
    assert.deepEqual(event, {
      id: "e1",
      lane: 0,
      type: "T",
      key: "42",
      payload,
      headers: { a: "1", b: "[true]" },
      correlationId: "c",
      createdAt: null,
      failures: 0,
      fault: null,
    });
  });

  test("F4 what is no event has a fault, is kept whole and is named by its place", () => {
    const bad = [
      "",
      "{}",
      "{}\n",
      "no\nx",
      "[]\n",
      '{"id":"1"}\n',
      '{"id":"1","type":""}\n',
      '{"id":12345678901234567890,"type":"T"}\n',
    ];
    for (const text of [
      ...bad,
      '{"id":"1","type":"T","headers":{"a":1,"b":2,"c":3}}\n',
      '{"id":"1","type":"T","headers":3}\n',
    ]) {
      const event = readMessageEvent(Buffer.from(text), "0/1:1", LIMITS);
      assert.equal(event.fault?.code, "EVENT_UNREADABLE", text);
      assert.deepEqual([event.id, event.payload.toString()], ["0/1:1", text]);
    }
  });

  test("F4 a payload beyond the limit stays with its event for a replay", () => {
    const event = readMessageEvent(Buffer.from(`{"id":"1","type":"T"}\n${"x".repeat(101)}`), "0/1:1", LIMITS);
    assert.equal(event.fault?.code, "EVENT_TOO_LARGE");
    assert.equal(event.payload.length, 101);
  });

  test("H1 a payload that is too large to be stored is left out, and the event is still a dead letter", () => {
    const head = '{"id":"1","type":"T"}\n';
    const event = readMessageEvent(Buffer.alloc(33 * 1024 * 1024, head), "0/1:1", LIMITS);
    assert.deepEqual([event.fault?.code, event.id, event.payload.length], ["EVENT_TOO_LARGE", "1", 0]);
    assert.match(event.fault?.reason ?? "", /the limit is 100; it was too large to be kept$/);
    const unreadable = readMessageEvent(Buffer.alloc(33 * 1024 * 1024, "x"), "0/1:1", LIMITS);
    assert.deepEqual([unreadable.fault?.code, unreadable.payload.length], ["EVENT_UNREADABLE", 32 * 1024 * 1024]);
  });
});

test("the first rule that matches says whether an event belongs to the pipeline", () => {
  const takes = typeMatcher([
    { pattern: "order.*", when: [{ field: "header:tenant", patterns: ["a*"] }], mine: true },
    { pattern: "order.Old", mine: false },
    { pattern: "*", when: [{ field: "key", patterns: ["k"] }], mine: true },
  ]);
  const event = { type: "order.New", key: null, correlationId: null, headers: {} };
  assert.equal(takes({ ...event, headers: { tenant: "ab" } }), true);
  assert.equal(takes(event), false);
  assert.equal(takes({ ...event, type: "order.Old", key: "k" }), false);
  assert.equal(takes({ ...event, key: "k" }), true);
  assert.equal(takes({ ...event, type: "orderXNew", headers: { tenant: "a" } }), false);
});
