import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventHeaders, OutboxEvent } from "../core/event.ts";
import { messageOf } from "./message.ts";

function event(changes: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    id: "e1",
    type: "order.placed",
    key: "order-7",
    payload: Buffer.from([0, 255, 1]),
    headers: {},
    correlationId: "c1",
    createdAt: "2026-01-02T03:04:05.678901Z",
    ...changes,
  };
}

const route = { destination: "kafka" };

test("A16 topic is the type, key the key, value the stored payload, with the relay's three headers", () => {
  const source = event();
  const message = messageOf(route, source);
  assert.equal(message.topic, "order.placed");
  assert.equal(message.key, "order-7");
  assert.equal(message.payload, source.payload);
  assert.equal(message.event, source);
  assert.deepEqual(message.headers, {
    "event-id": "e1",
    "correlation-id": "c1",
    "created-at": "2026-01-02T03:04:05.678Z",
  });
});

test("A16 a header that the row has no value for is left out", () => {
  assert.deepEqual(messageOf(route, event({ correlationId: null, createdAt: null })).headers, { "event-id": "e1" });
});

test("A16 the time of creation is as Date.toISOString writes it, whatever precision the row has", () => {
  const shown = (createdAt: string) => messageOf(route, event({ createdAt })).headers["created-at"];
  for (const time of ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.678999Z"]) {
    assert.equal(shown(time), new Date(time).toISOString());
  }
  assert.equal(shown("2026-01-02T03:04:05+02:00"), "2026-01-02T03:04:05+02:00");
  assert.equal(shown("1735787045"), "1735787045");
});

test("B6 no header of the row is lost, the relay's own win on conflict", () => {
  const own: EventHeaders = JSON.parse('{"tenant":"t","event-id":"forged","__proto__":"kept","constructor":"kept"}');
  const { headers } = messageOf(route, event({ headers: own }));
  assert.deepEqual(Object.entries(headers).sort(), [
    ["__proto__", "kept"],
    ["constructor", "kept"],
    ["correlation-id", "c1"],
    ["created-at", "2026-01-02T03:04:05.678Z"],
    ["event-id", "e1"],
    ["tenant", "t"],
  ]);
});

test("A16 a route can change topic, key and headers", () => {
  const message = messageOf(
    {
      destination: "kafka",
      topic: (it) => `eu.${it.type}`,
      key: () => null,
      headers: (it) => ({ "correlation-id": `x-${it.correlationId}`, region: "eu" }),
    },
    event({ createdAt: null, headers: { tenant: "t" } }),
  );
  assert.equal(message.topic, "eu.order.placed");
  assert.equal(message.key, null);
  assert.deepEqual(message.headers, { "event-id": "e1", "correlation-id": "x-c1", region: "eu", tenant: "t" });
});

test("D3 no route can remove the idempotency key", () => {
  const { headers } = messageOf({ destination: "kafka", headers: () => ({ "event-id": "other" }) }, event());
  assert.equal(headers["event-id"], "e1");
});
