import assert from "node:assert/strict";
import { test } from "node:test";
import * as api from "@opentelemetry/api";
import { AlwaysOnSampler, InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import type { EventHeaders, Message } from "../../core/event.ts";
import { delivered, type Outcome, rejected, skipped } from "../../core/outcome.ts";
import type { Publisher } from "../../ports/publisher.ts";
import type { LaneTransactions } from "../../ports/transactions.ts";
import type { Otel } from "./load-otel.ts";
import { SendSpans } from "./send-spans.ts";
import { tracedPublisher } from "./traced-publisher.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const GIVEN = `00-${TRACE}-00f067aa0ba902b7-01`;
const NEVER = new AbortController().signal;
const LANE = { database: "d", pipeline: "p", lane: 0, slot: 0 };

function message(id: string, headers: EventHeaders = {}, topic = "orders"): Message {
  const payload = Buffer.from("{}");
  const event = { id, type: "t", key: null, payload, headers, correlationId: "c1", createdAt: null };
  return { event, topic, key: null, headers, payload };
}

/** A publisher that records its batches and returns the given outcomes. */
function watched(answer: (message: Message) => Outcome, ratio = 1) {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({
    sampler: new AlwaysOnSampler(),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  });
  const seen: (readonly Message[])[] = [];
  const ends: string[] = [];
  const lane: LaneTransactions = {
    isSpent: false,
    lastCommitted: async () => [],
    send: async (messages) => {
      seen.push(messages);
      return messages.map(answer);
    },
    commit: async () => void ends.push("commit"),
    abort: async () => void ends.push("abort"),
    close: async () => {},
  };
  const inner: Publisher = {
    name: "inner",
    capabilities: { keyOrderInBatch: true, deduplicates: false },
    transactions: { ringSize: 4, prepare: async () => {}, fence: async () => lane },
    publish: async (batch, report) => {
      seen.push(batch);
      for (const [index, it] of batch.entries()) report(index, answer(it));
    },
    close: async () => {},
  };
  const tracer = provider.getTracer("test");
  const redact = (text: string) => text.replaceAll("secret", "[redacted]");
  const options = { api: api as Otel["api"], tracer, beginTrace: () => {}, system: "kafka", ratio, redact };
  const publisher = tracedPublisher(inner, new SendSpans(options));
  return { publisher, exporter, seen, ends };
}

test("A21 an event's span is in its row's trace, the publish's span is linked to it, and its header is unchanged", async () => {
  const { publisher, exporter, seen } = watched(() => delivered);
  const outcomes: Outcome[] = [];
  await publisher.publish([message("e1", { traceparent: GIVEN })], (_, outcome) => void outcomes.push(outcome), NEVER);
  assert.deepEqual(outcomes, [delivered]);
  assert.deepEqual(seen[0]?.[0]?.headers, { traceparent: GIVEN });
  const [event, publish] = exporter.getFinishedSpans();
  assert.deepEqual(
    [event?.name, event?.kind, event?.spanContext().traceId],
    ["send orders", api.SpanKind.CLIENT, TRACE],
  );
  assert.equal(event?.parentSpanContext?.spanId, "00f067aa0ba902b7");
  assert.deepEqual(event?.attributes, {
    "messaging.system": "kafka",
    "messaging.operation.name": "send",
    "messaging.operation.type": "send",
    "messaging.destination.name": "orders",
    "messaging.message.id": "e1",
    "messaging.message.conversation_id": "c1",
  });
  assert.deepEqual([publish?.name, publish?.kind], ["send orders", api.SpanKind.CLIENT]);
  assert.equal(publish?.attributes["messaging.batch.message_count"], 1);
  assert.deepEqual(
    publish?.links.map(({ context }) => context.traceId),
    [TRACE],
  );
  assert.notEqual(publish?.spanContext().traceId, TRACE);
});

test("A21 a row without a context gets a header if it is traced, and none otherwise", async () => {
  const traced = watched(() => delivered);
  await traced.publisher.publish([message("e1", { other: "x" })], () => {}, NEVER);
  const [span] = traced.exporter.getFinishedSpans();
  const { traceId, spanId } = span!.spanContext();
  assert.equal(span?.kind, api.SpanKind.PRODUCER);
  assert.deepEqual(traced.seen[0]?.[0]?.headers, { other: "x", traceparent: `00-${traceId}-${spanId}-01` });
  const untraced = watched(() => delivered, 0);
  const batch = [message("e1"), message("e2", { traceparent: GIVEN.replace(/01$/, "00") })];
  await untraced.publisher.publish(batch, () => {}, NEVER);
  assert.equal(untraced.seen[0], batch, "not even a copy is made");
  assert.deepEqual(untraced.exporter.getFinishedSpans(), []);
});

test("A21 a header in another letter case, or without a valid context, is neither overwritten nor doubled", async () => {
  const { publisher, seen } = watched(() => delivered);
  await publisher.publish(
    [message("e1", { Traceparent: GIVEN }), message("e2", { traceparent: "?" })],
    () => {},
    NEVER,
  );
  assert.deepEqual(
    seen[0]?.map(({ headers }) => headers),
    [{ Traceparent: GIVEN }, { traceparent: "?" }],
  );
});

test("A21 A20 a failure is an error of the event's span and of its topic's, without secrets", async () => {
  const { publisher, exporter } = watched((it) =>
    it.topic === "bad" ? rejected("the secret is out", { errorType: "MESSAGE_TOO_LARGE" }) : delivered,
  );
  await publisher.publish([message("e1", {}, "bad"), message("e2")], () => {}, NEVER);
  const shown = exporter
    .getFinishedSpans()
    .map(({ name, attributes, status }) => [
      name,
      attributes["messaging.message.id"] ?? "publish",
      attributes["error.type"],
      status.message,
    ]);
  assert.deepEqual(shown, [
    ["send bad", "e1", "MESSAGE_TOO_LARGE", "the [redacted] is out"],
    ["send orders", "e2", undefined, undefined],
    ["send bad", "publish", "MESSAGE_TOO_LARGE", "the [redacted] is out"],
    ["send orders", "publish", undefined, undefined],
  ]);
});

test("A21 in a transaction an event counts as delivered on commit, and none on abort", async () => {
  const { publisher, exporter, ends } = watched((it) => (it.event.id === "bad" ? rejected("no") : delivered));
  const lane = await publisher.transactions!.fence(LANE, NEVER);
  const note = { batch: 1n, ids: [] };
  await lane.send([message("e1")], note, NEVER);
  assert.deepEqual(exporter.getFinishedSpans(), []);
  await lane.commit(NEVER);
  await lane.send([message("e2"), message("bad")], note, NEVER);
  await lane.abort(NEVER);
  await lane.send([message("e3")], note, NEVER);
  await lane.close();
  assert.deepEqual(ends, ["commit", "abort"]);
  const events = exporter.getFinishedSpans().filter(({ attributes }) => "messaging.message.id" in attributes);
  assert.deepEqual(
    events.map(({ attributes, status }) => [
      attributes["messaging.message.id"],
      attributes["outbox_relay.outcome"],
      status.code,
    ]),
    [
      ["e1", undefined, api.SpanStatusCode.UNSET],
      ["e2", skipped.kind, api.SpanStatusCode.UNSET],
      ["bad", "rejected", api.SpanStatusCode.ERROR],
      ["e3", undefined, api.SpanStatusCode.ERROR],
    ],
  );
});

test("A21 a publish that throws ends its spans with that error, and rethrows it", async () => {
  const { publisher, exporter } = watched(() => {
    throw new Error("gone");
  });
  await assert.rejects(
    publisher.publish([message("e1")], () => {}, NEVER),
    /gone/,
  );
  assert.deepEqual(
    exporter.getFinishedSpans().map(({ status }) => status.message),
    ["gone", "gone"],
  );
});

test("A21 the number of event spans of a publish is bounded", async () => {
  const { publisher, exporter, seen } = watched(() => delivered);
  const batch = Array.from({ length: 1_000 }, (_, n) => message(`e${n}`));
  await publisher.publish(batch, () => {}, NEVER);
  assert.equal(exporter.getFinishedSpans().length, 101);
  assert.equal(exporter.getFinishedSpans().at(-1)?.attributes["messaging.batch.message_count"], 1_000);
  assert.equal(seen[0]?.filter(({ headers }) => "traceparent" in headers).length, 100);
});
