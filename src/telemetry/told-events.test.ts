import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../core/clock.ts";
import type { TechnicalEvent, TechnicalEventMap, TechnicalEventName } from "../ports/technical-events.ts";
import { Condition } from "./condition.ts";
import type { Listenable } from "./listenable.ts";
import { logEvents } from "./log-events.ts";
import { createLogger } from "./logger.ts";
import { Metrics } from "./metrics.ts";
import { redactor } from "./redaction.ts";

/** Tells what the test wants told, as the relay does. */
class Teller implements Listenable {
  readonly #listeners = new Map<string, ((event: never) => void)[]>();

  on<Name extends TechnicalEventName>(
    name: Name,
    listener: (event: Extract<TechnicalEvent, { readonly name: Name }>) => void,
  ): () => void {
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
    return () => {};
  }

  tell<Name extends TechnicalEventName>(name: Name, event: TechnicalEventMap[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) listener({ name, timestamp: 0, ...event } as never);
  }

  hears(name: TechnicalEventName): boolean {
    return this.#listeners.has(name);
  }
}

class SetClock implements Clock {
  nowMs = 0;
  wallMs = () => this.nowMs;
  monotonicMs = () => this.nowMs;
  sleep = () => new Promise<void>(() => {});
}

function logged(events: "failures" | "all" = "failures", secrets: readonly string[] = []) {
  const teller = new Teller();
  const clock = new SetClock();
  const lines: Record<string, unknown>[] = [];
  const stream = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const redact = redactor(secrets);
  const logger = createLogger({ service: "shop-relay", version: "1.2.3", level: "info", redact, stream });
  const flush = logEvents(teller, { logger, clock, events });
  return { teller, clock, lines, flush };
}

const about = {
  pipeline: "orders.outbox->kafka",
  recordId: "e1",
  intentType: "order.placed",
  target: "kafka",
  key: "k1",
  correlationId: "c1",
};
const pipeline = about.pipeline;

test("A21 C6 a dead letter is an ERROR line with labels, correlation id and full context", () => {
  const { teller, lines } = logged();
  teller.tell("IntentDeadLettered", { ...about, attempt: 10, reason: "too large", parks: true });
  const { time, ...line } = lines[0]!;
  assert.match(String(time), /^\d{4}-\d\d-\d\dT.*Z$/);
  assert.deepEqual(line, {
    level: "error",
    service: "shop-relay",
    version: "1.2.3",
    event: "IntentDeadLettered",
    pipeline,
    eventId: "e1",
    eventType: "order.placed",
    target: "kafka",
    key: "k1",
    correlationId: "c1",
    attempt: 10,
    reason: "too large",
    parks: true,
    message: "an event is a dead letter",
  });
});

test("C6 failed attempts are logged one by one, delivered events only if asked for", () => {
  const failures = logged();
  const failed = { ...about, durationMs: 3, attempt: 1, reason: "no", retryInMs: 1_000 };
  failures.teller.tell("IntentRelayFailed", { ...failed, scope: "event" });
  failures.teller.tell("IntentRelayFailed", { ...failed, scope: "destination" });
  assert.deepEqual(
    failures.lines.map(({ level }) => level),
    ["warn"],
    "an outage is told by its circuit",
  );
  assert.equal(failures.teller.hears("IntentRelayed"), false, "so that it is not even made");
  const all = logged("all");
  all.teller.tell("IntentRelayed", { ...about, durationMs: 3, attempt: 1 });
  assert.deepEqual([all.lines[0]?.eventId, all.lines[0]?.correlationId, all.lines[0]?.attempt], ["e1", "c1", 1]);
});

test("C6 deliveries are summed up to one line a second for each pipeline", () => {
  const { teller, clock, lines, flush } = logged();
  const settled = { pipeline, lane: 0, failed: 0, durationMs: 1 };
  teller.tell("BatchSettled", { ...settled, delivered: 5 });
  for (let batch = 0; batch < 100; batch += 1) teller.tell("BatchSettled", { ...settled, delivered: 5 });
  assert.deepEqual(
    lines.map(({ delivered, batches }) => [delivered, batches]),
    [[5, 1]],
  );
  flush();
  assert.deepEqual(
    lines.map(({ delivered, batches }) => [delivered, batches]),
    [
      [5, 1],
      [500, 100],
    ],
  );
  clock.nowMs += 1_000;
  teller.tell("BatchSettled", { ...settled, delivered: 0, failed: 1 });
  assert.equal(lines.length, 3);
});

test("A7 the same trouble is logged once a minute with a count, and at once when it comes back", () => {
  const { teller, clock, lines } = logged();
  const broken = { pipeline, code: "TABLE_MISSING", reason: "The table orders.outbox does not exist" } as const;
  for (let second = 0; second < 60; second += 1) {
    teller.tell("SourceBroken", broken);
    clock.nowMs += 1_000;
  }
  assert.equal(lines.length, 1);
  teller.tell("SourceBroken", broken);
  assert.deepEqual([lines.length, lines[1]?.repeated], [2, 59]);
  teller.tell("SourceBroken", { ...broken, code: "GRANT_MISSING" });
  teller.tell("SourceRecovered", { pipeline });
  teller.tell("SourceBroken", broken);
  assert.deepEqual(
    lines.map(({ event }) => event),
    ["SourceBroken", "SourceBroken", "SourceBroken", "SourceRecovered", "SourceBroken"],
  );
});

test("A20 a secret is blotted out wherever it stands in a line", () => {
  const { teller, lines } = logged("failures", ['pa"ss', "token-1", "abc"]);
  const reason = 'postgres://me:pa"ss@h refused token-1, abc stays';
  teller.tell("CircuitOpened", { destination: "kafka", topic: null, reason });
  assert.equal(lines[0]?.reason, "postgres://me:[redacted]@h refused [redacted], abc stays");
});

test("A18 what is broken is known until it recovers, an answer disproves it, or nobody tells it any more", () => {
  const teller = new Teller();
  const clock = new SetClock();
  const condition = new Condition(clock);
  condition.listen(teller);
  const names = () => condition.brokenSources().map((source) => source.code);
  teller.tell("SourceBroken", { pipeline, code: "TABLE_MISSING", reason: "r" });
  condition.answered(pipeline);
  assert.deepEqual(names(), ["TABLE_MISSING"], "an answer says nothing about the table");
  teller.tell("SourceRecovered", { pipeline });
  assert.deepEqual(names(), []);
  teller.tell("SourceBroken", { pipeline, code: "DATABASE_UNREACHABLE", reason: "r" });
  condition.answered(pipeline);
  assert.deepEqual(names(), []);
  teller.tell("SourceBroken", { pipeline, code: "GRANT_MISSING", reason: "r" });
  clock.nowMs += 60_001;
  assert.deepEqual(names(), []);
  teller.tell("CircuitOpened", { destination: "kafka", topic: "t", reason: "r" });
  teller.tell("CircuitOpened", { destination: "kafka", topic: null, reason: "r" });
  teller.tell("CircuitClosed", { destination: "kafka", topic: null });
  assert.deepEqual(condition.openCircuits(), [{ destination: "kafka", topic: "t", reason: "r" }]);
});

test("A11 A13 the metrics have OpenMetrics names, and a broken source and a closed destination are seen in them", async () => {
  const teller = new Teller();
  const clock = new SetClock();
  const condition = new Condition(clock);
  const ends = { pipeline, source: "orders.outbox", destination: "kafka" };
  const last = { pending: 7, isEstimate: false, oldestAgeMs: 1_500, dead: 2 };
  const figures = [
    { source: "orders.outbox", schema: "orders", last, lagMs: 1_500 },
    { source: "orders.outbox_events", schema: "orders", last: null, lagMs: 90_000 },
  ];
  const metrics = new Metrics({ version: "1.2.3", condition, backlog: async () => figures, pipelines: () => [ends] });
  condition.listen(teller);
  metrics.listen(teller);
  metrics.expect(ends);
  metrics.polled("orders.outbox", 3);
  assert.match(
    await metrics.text(),
    /outbox_relay_events_published_total\{source="orders.outbox",destination="kafka"\} 0\n/,
  );
  teller.tell("BatchSettled", { pipeline, lane: 0, delivered: 5, failed: 1, durationMs: 1 });
  teller.tell("SourceBroken", { pipeline, code: "TABLE_MISSING", reason: "r" });
  teller.tell("CircuitOpened", { destination: "kafka", topic: null, reason: "r" });
  const text = await metrics.text();
  assert.match(metrics.contentType, /^application\/openmetrics-text/);
  for (const line of [
    "# TYPE outbox_relay_events_published counter",
    'outbox_relay_events_published_total{source="orders.outbox",destination="kafka"} 5',
    'outbox_relay_delivery_attempts_total{destination="kafka",outcome="failed"} 1',
    "# TYPE outbox_relay_poll_duration histogram",
    'outbox_relay_poll_duration_bucket{le="0.005",source="orders.outbox"} 1',
    "# TYPE outbox_relay_failed_events gauge",
    "outbox_relay_failed_events 2",
    'outbox_relay_lag_seconds{schema="orders"} 90',
    'outbox_relay_pending_events{source="orders.outbox",state="pending"} 7',
    'outbox_relay_source_broken{source="orders.outbox"} 1',
    'outbox_relay_destination_state{destination="kafka",state="up"} 0',
    'outbox_relay_destination_state{destination="kafka",state="down"} 1',
    `outbox_relay_build_info{version="1.2.3",node="${process.version}"} 1`,
  ]) {
    assert.ok(text.includes(`${line}\n`), `${line} is not in\n${text}`);
  }
  assert.ok(text.endsWith("# EOF\n"));
});

test("A11 nobody is told a number of failed events that nobody has counted", async () => {
  const condition = new Condition(new SetClock());
  const metrics = new Metrics({ version: "1", condition, backlog: async () => [], pipelines: () => [] });
  assert.doesNotMatch(await metrics.text(), /^outbox_relay_failed_events/m);
});
