import assert from "node:assert/strict";
import { test } from "node:test";
import type { OutboxEvent } from "../core/event.ts";
import type { Envelope } from "./envelope.ts";
import { messageOf } from "./message.ts";

function event(changes: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    id: "e1",
    type: "order.placed",
    key: 'order "7"',
    payload: Buffer.from('{"amount": 12345678901234567890.10}'),
    headers: {},
    correlationId: "c1",
    createdAt: "2026-01-02T03:04:05.678901Z",
    ...changes,
  };
}

const binary: Envelope = { format: "cloudevents-binary", source: "/shop/orders" };
const structured: Envelope = { ...binary, format: "cloudevents-structured" };

test("B6 CloudEvents in binary form: the payload as it is, the attributes as headers of the broker's binding", () => {
  const source = event();
  const { headers, payload } = messageOf({ destination: "kafka", envelope: binary }, source, "ce_");
  assert.equal(payload, source.payload);
  assert.deepEqual(headers, {
    "event-id": "e1",
    "correlation-id": "c1",
    "created-at": "2026-01-02T03:04:05.678Z",
    "content-type": "application/json",
    ce_specversion: "1.0",
    ce_id: "e1",
    ce_source: "/shop/orders",
    ce_type: "order.placed",
    ce_time: "2026-01-02T03:04:05.678901Z",
    ce_partitionkey: 'order "7"',
    ce_correlationid: "c1",
  });
});

test("B6 CloudEvents in structured form: one document, with the payload's bytes unchanged", () => {
  const { headers, payload } = messageOf({ destination: "http", envelope: structured }, event());
  assert.equal(headers["content-type"], "application/cloudevents+json; charset=utf-8");
  assert.ok(payload.toString().endsWith(',"data":{"amount": 12345678901234567890.10}}'), payload.toString());
  const { data: _, ...attributes } = JSON.parse(payload.toString()) as Record<string, unknown>;
  assert.deepEqual(attributes, {
    specversion: "1.0",
    id: "e1",
    source: "/shop/orders",
    type: "order.placed",
    time: "2026-01-02T03:04:05.678901Z",
    partitionkey: 'order "7"',
    correlationid: "c1",
    datacontenttype: "application/json",
  });
});

test("B6 bytes that are not JSON are sent as base64, and the content type of the event wins", () => {
  const bytes = Buffer.from([0, 255, 1]);
  const own = event({ payload: bytes, headers: { "content-type": "application/avro" }, correlationId: null });
  const { payload } = messageOf({ destination: "http", envelope: structured }, own);
  const document = JSON.parse(payload.toString()) as Record<string, unknown>;
  assert.deepEqual(
    [document.data_base64, document.datacontenttype, document.data],
    ["AP8B", "application/avro", undefined],
  );
  assert.ok(!("correlationid" in document));
  const { headers } = messageOf({ destination: "http", envelope: binary }, own);
  assert.deepEqual([headers["content-type"], headers["ce-id"]], ["application/avro", "e1"]);
});

test("an event without payload has no data; a payload that only claims to be JSON is refused", () => {
  const empty = messageOf({ destination: "http", envelope: structured }, event({ payload: Buffer.alloc(0) }));
  assert.ok(!("data" in (JSON.parse(empty.payload.toString()) as object)));
  const broken = event({ payload: Buffer.from('{"a":1') });
  assert.throws(
    () => messageOf({ destination: "http", envelope: structured }, broken),
    /not JSON, although its content type/,
  );
});

test("D1 a route can translate the payload, and its envelope wraps the translation", () => {
  const route = { destination: "http", envelope: structured, payload: ({ id }: OutboxEvent) => Buffer.from(`"${id}"`) };
  const document = JSON.parse(messageOf(route, event()).payload.toString()) as Record<string, unknown>;
  assert.equal(document.data, "e1");
});
