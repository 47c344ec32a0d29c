import assert from "node:assert/strict";
import { test } from "node:test";
import { eventSampler, traceIdOf } from "./event-sampler.ts";
import { loadOtel } from "./load-otel.ts";
import { sampledContext, traceparentOf } from "./send-spans.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

test("A21 the share of traced events is as configured for all kinds of ids, and the decision for an event never changes", () => {
  const numbers = Array.from({ length: 100_000 }, (_, n) => String(n));
  const uuids = numbers.map((n) => `00000000-0000-4000-8000-${n.padStart(12, "0")}`);
  for (const ids of [numbers, uuids]) {
    for (const ratio of [0.01, 0.5]) {
      const isChosen = eventSampler(ratio);
      const chosen = ids.filter(isChosen);
      assert.ok(Math.abs(chosen.length / ids.length - ratio) < ratio * 0.1, `${chosen.length} at ${ratio}`);
      assert.deepEqual(chosen.filter(eventSampler(ratio)), chosen);
    }
  }
  assert.deepEqual(numbers.filter(eventSampler(0)), []);
  assert.equal(numbers.filter(eventSampler(1)).length, numbers.length);
});

test("A21 an event's trace has one id for all attempts, which no other event shares", () => {
  const messageOf = (id: string) => {
    const payload = Buffer.alloc(0);
    const event = { id, type: "t", key: null, payload, headers: {}, correlationId: null, createdAt: null };
    return { event, topic: "t", key: null, headers: {}, payload };
  };
  const ids = Array.from({ length: 50_000 }, (_, n) => traceIdOf(messageOf(String(n))));
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(ids.every((id) => /^[0-9a-f]{32}$/.test(id)));
  assert.equal(traceIdOf(messageOf("7")), ids[7]);
});

test("A21 only a valid, sampled context is used", () => {
  const context = { traceId: TRACE, spanId: SPAN, traceFlags: 1, isRemote: true };
  assert.deepEqual(sampledContext(`00-${TRACE}-${SPAN}-01`), context);
  assert.deepEqual(sampledContext(`01-${TRACE}-${SPAN}-03-more`), context, "a later version");
  for (const bad of [
    `00-${TRACE}-${SPAN}-00`,
    `00-${TRACE}-${SPAN}`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${"0".repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    "",
  ]) {
    assert.equal(sampledContext(bad), null, bad);
  }
  assert.equal(traceparentOf({ TraceParent: "x" }), "x");
  assert.equal(traceparentOf({ other: "x" }), undefined);
});

test("A21 without OpenTelemetry the error names the setting and the install command", async () => {
  const missing = () => Promise.reject(new Error("Cannot find package"));
  await assert.rejects(
    loadOtel(missing),
    /OTEL_EXPORTER_OTLP_ENDPOINT.*npm install @opentelemetry\/api @opentelemetry/,
  );
});
