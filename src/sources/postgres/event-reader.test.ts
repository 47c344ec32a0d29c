import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "../../postgres/session.ts";
import { COLUMN } from "./event-columns.ts";
import { EventReader, isoTime } from "./event-reader.ts";

const options = { payloadBytesMax: 1_000, headersMax: 2, isBytea: false };

function row(values: Partial<Record<keyof typeof COLUMN, string>>): Row {
  const all = { id: "1", lane: "3", type: "order.placed", payload: "{}", ...values };
  const result: (string | null)[] = new Array(15).fill(null);
  for (const [name, value] of Object.entries(all)) result[COLUMN[name as keyof typeof COLUMN]] = value;
  return result;
}

test("A16 a row becomes an event with the payload's bytes as stored", () => {
  const values = { key: "k", payload: '{"a": "é"}', correlationId: "c", createdAt: "2026-01-10 12:00:00.123456+00" };
  assert.deepEqual(new EventReader(options).read(row({ ...values, headers: '{"h":"v"}', attempts: "2" }), null, null), {
    id: "1",
    lane: 3,
    type: "order.placed",
    key: "k",
    payload: Buffer.from('{"a": "é"}'),
    headers: { h: "v" },
    correlationId: "c",
    createdAt: "2026-01-10T12:00:00.123456Z",
    failures: 2,
    fault: null,
  });
});

test("bytea arrives as bytes, and no payload is none", () => {
  const reader = new EventReader({ ...options, isBytea: true });
  assert.deepEqual(reader.read(row({ payload: "\\x00ff10" }), null, null).payload, Buffer.from([0, 255, 16]));
  assert.equal(reader.read(row({ payload: "\\x" }), null, null).payload.length, 0);
  const none = [...row({})];
  none[COLUMN.payload] = null;
  assert.deepEqual([reader.read(none, null, null).payload.length, reader.read(none, null, null).fault], [0, null]);
});

test("a payload that was left out is loaded, or is a fault when it is too large", () => {
  const reader = new EventReader(options);
  const leftOut = [...row({ size: "900" })];
  leftOut[COLUMN.payload] = null;
  assert.equal(reader.bytesToLoad(leftOut), 900);
  assert.equal(reader.read(leftOut, { payload: "loaded", headers: null }, null).payload.toString(), "loaded");
  leftOut[COLUMN.size] = "1001";
  assert.equal(reader.bytesToLoad(leftOut), 0);
  const { fault, payload } = reader.read(leftOut, null, null);
  assert.deepEqual([fault?.code, payload.length], ["EVENT_TOO_LARGE", 0]);
  assert.match(fault?.reason ?? "", /Row 1.*1001 bytes.*1000/);
});

test("H1 headers that were left out are loaded, and a part that is too large is a fault", () => {
  const reader = new EventReader(options);
  const leftOut = [...row({ size: "10", headers: "+900" })];
  leftOut[COLUMN.payload] = null;
  assert.equal(reader.bytesToLoad(leftOut), 910);
  const loaded = reader.read(leftOut, { payload: "{}", headers: '{"a":"b"}' }, null);
  assert.deepEqual([loaded.payload.toString(), loaded.headers, loaded.fault], ["{}", { a: "b" }, null]);
  const excessive = [...row({})];
  excessive[COLUMN.excess] = "the key has 9000 bytes, more than the 8192 that are allowed";
  const { fault } = reader.read(excessive, null, null);
  assert.deepEqual([fault?.code, fault?.reason], ["EVENT_TOO_LARGE", `Row 1: ${excessive[COLUMN.excess]}`]);
});

test("H1 all parts of a row count for the size of a page", () => {
  const reader = new EventReader(options);
  const small = reader.bytesOf(row({}));
  for (const part of ["key", "type", "correlationId", "headers", "trace"] as const) {
    const wide = [...row({})];
    wide[COLUMN[part]] = "x".repeat(500);
    assert.ok(reader.bytesOf(wide) >= small + 500, part);
  }
});

test("an event without a type or with unreadable headers has a fault that names its row", () => {
  const reader = new EventReader(options);
  const cases = [row({ type: "" }), row({ headers: "[]" }), row({ headers: '{"a":1,"b":2,"c":3}' })];
  for (const it of cases) {
    const { fault } = reader.read(it, null, null);
    assert.equal(fault?.code, "EVENT_UNREADABLE");
    assert.match(fault.reason, /Row 1/);
  }
});

test("A21 a context in columns of its own becomes headers, unless the headers have one", () => {
  const reader = new EventReader(options);
  const headersOf = (values: Parameters<typeof row>[0]) => reader.read(row(values), null, null).headers;
  assert.deepEqual(headersOf({ trace: "00-a-b-01" }), { traceparent: "00-a-b-01" });
  assert.deepEqual(headersOf({ trace: "00-a-b-01\nx=1", headers: '{"h":"v"}' }), {
    h: "v",
    traceparent: "00-a-b-01",
    tracestate: "x=1",
  });
  assert.deepEqual(headersOf({ trace: "00-a-b-01", headers: '{"traceparent":"own"}' }), { traceparent: "own" });
  assert.deepEqual(headersOf({ trace: "" }), {});
});

test("what a hold knows of failures wins over the row", () => {
  assert.equal(new EventReader(options).read(row({ attempts: "7" }), null, 2).failures, 2);
});

test("A16 times keep the precision that was stored", () => {
  assert.equal(isoTime("2026-01-10 12:00:00+00"), "2026-01-10T12:00:00Z");
  assert.equal(isoTime("2026-01-10 12:00:00.1"), "2026-01-10T12:00:00.1Z");
  for (const text of ["infinity", "-infinity", "0044-03-15 00:00:00+00 BC", "12026-01-01 00:00:00+00"]) {
    assert.equal(isoTime(text), null, text);
  }
});
