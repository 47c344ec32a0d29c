import assert from "node:assert/strict";
import { test } from "node:test";
import { dedupeId } from "./dedupe-id.ts";
import type { Message, OutboxEvent } from "./event.ts";

const UUID = "0b9c1f8e-6d5a-4c3b-9a2f-1e0d7c6b5a49";

function message(changes: Partial<OutboxEvent> = {}, topic = "order.placed"): Message {
  const event = {
    id: UUID,
    type: "order.placed",
    key: "k",
    payload: Buffer.from("{}"),
    headers: {},
    correlationId: null,
    createdAt: "2026-01-02T03:04:05Z",
    ...changes,
  };
  return { event, topic, key: event.key, headers: {}, payload: event.payload };
}

test("D3 the event's id identifies a message", () => {
  const ids = [UUID, "01J9ZQ4V3N6W7X8Y9Z0A1B2C3D", "V1StGXR8_Z5jdHi6B-myT", "11111111-1111-4111-8111-111111111111"];
  for (const id of ids) assert.equal(dedupeId(message({ id }, "another.topic")), id);
});

test("D3 A2 events of two tables with equal ids are not taken for duplicates", () => {
  const ids = [
    message({ id: "1" }),
    message({ id: "1", key: "other" }),
    message({ id: "1", createdAt: "2026-01-02T03:04:06Z" }),
    message({ id: "1", payload: Buffer.from("{ }") }),
    message({ id: "1", type: "order.paid" }, "order.paid"),
  ].map(dedupeId);
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) assert.match(id, /^1-[\w-]{22}$/);
  assert.equal(dedupeId(message({ id: "1" })), ids[0]);
});
