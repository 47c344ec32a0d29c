import assert from "node:assert/strict";
import { test } from "node:test";
import { AnswerBook } from "../core/answer-times.ts";
import type { Clock } from "../core/clock.ts";
import type { HealthCause } from "../core/health-cause.ts";
import { LATENCY_BOUNDS_MS } from "../core/latency.ts";
import type { TechnicalEvent, TechnicalEventMap, TechnicalEventName } from "../ports/technical-events.ts";
import type { BacklogFigures } from "./backlog-watch.ts";
import { Condition } from "./condition.ts";
import type { Listenable } from "./listenable.ts";
import { logEvents } from "./logs/log-events.ts";
import { createLogger } from "./logs/logger.ts";
import { redactor } from "./logs/redaction.ts";
import { Metrics } from "./metrics/metrics.ts";
import { PushTally } from "./push-tally.ts";

/** Emits the events of the test, as the relay does. */
class Emitter implements Listenable {
  readonly #listeners = new Map<string, ((event: never) => void)[]>();

  on<Name extends TechnicalEventName>(
    name: Name,
    listener: (event: Extract<TechnicalEvent, { readonly name: Name }>) => void,
  ): () => void {
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
    return () => {};
  }

  emit<Name extends TechnicalEventName>(name: Name, event: TechnicalEventMap[Name]): void {
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
  const emitter = new Emitter();
  const clock = new SetClock();
  const lines: Record<string, unknown>[] = [];
  const stream = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const redact = redactor(secrets);
  const logger = createLogger({ service: "shop-relay", version: "1.2.3", level: "info", redact, stream });
  const flush = logEvents(emitter, { logger, clock, events });
  return { emitter, clock, lines, flush };
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

test("A21 C6 C2 a dead letter is an ERROR line with labels, correlation id and full context", () => {
  const { emitter, lines } = logged();
  const errors = [
    { at: "2026-01-01T00:00:00Z", attempt: 1, reason: "no answer" },
    { at: "2026-01-02T00:00:00Z", attempt: 2, reason: "too large" },
  ];
  const times = { firstFailedAt: errors[0]!.at, lastFailedAt: errors[1]!.at };
  emitter.emit("IntentDeadLettered", { ...about, attempt: 2, reason: "too large", parks: true, ...times, errors });
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
    attempt: 2,
    reason: "too large",
    parks: true,
    ...times,
    errors,
    message: "an event became a dead letter",
  });
});

test("C6 failed attempts are logged one by one, delivered events only if asked for", () => {
  const failures = logged();
  const stack = "Error: no\n    at send (broker.ts:1:1)";
  const failure = { attempt: 1, reason: "no", errorType: "PUBLISH_FAILED", stack, retryInMs: 1_000 };
  const failed = { ...about, durationMs: 3, ...failure };
  failures.emitter.emit("IntentRelayFailed", { ...failed, scope: "event" });
  failures.emitter.emit("IntentRelayFailed", { ...failed, scope: "destination" });
  assert.deepEqual(
    failures.lines.map(({ level }) => level),
    ["warn"],
    "the circuit reports an outage",
  );
  const [line] = failures.lines;
  assert.deepEqual(
    [line?.eventId, line?.eventType, line?.correlationId, line?.attempt, line?.stack],
    ["e1", "order.placed", "c1", 1, stack],
  );
  assert.equal(failures.emitter.hears("IntentRelayed"), false, "so the event is never built");
  const all = logged("all");
  all.emitter.emit("IntentRelayFailed", { ...failed, scope: "destination" });
  assert.deepEqual([all.lines.pop()?.level, all.lines.length], ["info", 0], "every attempt, if asked for");
  all.emitter.emit("IntentRelayed", { ...about, durationMs: 3, attempt: 1 });
  assert.deepEqual([all.lines[0]?.eventId, all.lines[0]?.correlationId, all.lines[0]?.attempt], ["e1", "c1", 1]);
});

test("C6 deliveries are summed up to one line per second and pipeline", () => {
  const { emitter, clock, lines, flush } = logged();
  const settled = { pipeline, lane: 0, failed: 0, durationMs: 1, latency: null };
  emitter.emit("BatchSettled", { ...settled, delivered: 5 });
  for (let batch = 0; batch < 100; batch += 1) emitter.emit("BatchSettled", { ...settled, delivered: 5 });
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
  emitter.emit("BatchSettled", { ...settled, delivered: 0, failed: 1 });
  assert.equal(lines.length, 3);
  assert.deepEqual(
    lines.map(({ msg, message }) => message ?? msg),
    ["events delivered", "events delivered", "no event was delivered, failures were stored"],
  );
});

test("A7 the same fault is logged once a minute with a count, and at once when it returns", () => {
  const { emitter, clock, lines } = logged();
  const broken = { pipeline, code: "TABLE_MISSING", reason: "The table orders.outbox does not exist" } as const;
  for (let second = 0; second < 60; second += 1) {
    emitter.emit("SourceBroken", broken);
    clock.nowMs += 1_000;
  }
  assert.equal(lines.length, 1);
  emitter.emit("SourceBroken", broken);
  assert.deepEqual([lines.length, lines[1]?.repeated], [2, 59]);
  emitter.emit("SourceBroken", { ...broken, code: "GRANT_MISSING" });
  emitter.emit("SourceRecovered", { pipeline });
  emitter.emit("SourceBroken", broken);
  assert.deepEqual(
    lines.map(({ event }) => event),
    ["SourceBroken", "SourceBroken", "SourceBroken", "SourceRecovered", "SourceBroken"],
  );
});

test("A20 a secret is redacted anywhere in a line", () => {
  const { emitter, lines } = logged("failures", ['pa"ss', "token-1", "abc"]);
  const reason = 'postgres://me:pa"ss@h refused token-1, abc stays';
  emitter.emit("CircuitOpened", { destination: "kafka", topic: null, reason });
  assert.equal(lines[0]?.reason, "postgres://me:[redacted]@h refused [redacted], abc stays");
});

test("A18 a broken source is known until it recovers, an answer disproves it, or its reports stop", () => {
  const emitter = new Emitter();
  const clock = new SetClock();
  const condition = new Condition(clock);
  condition.listen(emitter);
  const names = () => condition.brokenSources().map((source) => source.code);
  emitter.emit("SourceBroken", { pipeline, code: "TABLE_MISSING", reason: "r" });
  emitter.emit("SourceAnswered", { pipeline, pollMs: null });
  assert.deepEqual(names(), ["TABLE_MISSING"], "an answer says nothing about the table");
  emitter.emit("SourceRecovered", { pipeline });
  assert.deepEqual(names(), []);
  emitter.emit("SourceBroken", { pipeline, code: "DATABASE_UNREACHABLE", reason: "r" });
  emitter.emit("SourceAnswered", { pipeline, pollMs: null });
  assert.deepEqual(names(), []);
  emitter.emit("SourceBroken", { pipeline, code: "GRANT_MISSING", reason: "r" });
  clock.nowMs += 60_001;
  assert.deepEqual(names(), []);
  emitter.emit("CircuitOpened", { destination: "kafka", topic: "t", reason: "r" });
  emitter.emit("CircuitOpened", { destination: "kafka", topic: null, reason: "r" });
  emitter.emit("CircuitClosed", { destination: "kafka", topic: null });
  assert.deepEqual(condition.openCircuits(), [{ destination: "kafka", topic: "t", reason: "r", sinceMs: 0 }]);
});

const ends = { pipeline, source: "orders.outbox", destination: "kafka" };

const CAUSE: HealthCause = {
  ...{ code: "dead-letters", grade: "attention", ...ends, what: "3 dead letters", fix: null, since: null, link: "/#/" },
};

function measured(figures: readonly BacklogFigures[]) {
  const emitter = new Emitter();
  const condition = new Condition(new SetClock());
  const pushes = new PushTally();
  const pipelines = () => [ends];
  const answers = new AnswerBook(new SetClock());
  const causes = async () => [CAUSE];
  const unrouted = () => [{ source: "orders.outbox", events: 12_000, isEstimate: true, oldestAgeMs: null }];
  const sources = { backlog: async () => figures, unrouted, pipelines, answers, causes };
  const metrics = new Metrics({ version: "1.2.3", condition, pushes, ...sources });
  condition.listen(emitter);
  metrics.listen(emitter, [ends]);
  const [counts, sumMs] = [new Array(LATENCY_BOUNDS_MS.length + 1).fill(0), 3_000];
  counts[2] = 4;
  counts[LATENCY_BOUNDS_MS.length] = 1;
  const batch = { pipeline, lane: 0, delivered: 5, failed: 1, durationMs: 1, latency: { counts, sumMs } };
  return { emitter, metrics, pushes, batch, answers };
}

function includesAll(text: string, lines: readonly string[]): void {
  for (const line of lines) assert.ok(text.includes(`${line}\n`), `${line} is not in\n${text}`);
}

const FAILED = { ...about, durationMs: 1, attempt: 1, reason: "r", stack: null, retryInMs: null } as const;

test("H1 the metrics include answer times and the health grade with its causes", async () => {
  const { answers, metrics } = measured([]);
  for (const ms of [1.2, 140, 3_000]) answers.of("kafka").end(answers.of("kafka").begin(-ms), true);
  const { contentType, text } = await metrics.text("application/openmetrics-text");
  assert.match(contentType, /openmetrics/);
  includesAll(text, [
    "# TYPE outbox_relay_answer_seconds histogram",
    'outbox_relay_answer_seconds_bucket{le="0.001",destination="kafka"} 0',
    'outbox_relay_answer_seconds_bucket{le="0.002",destination="kafka"} 1',
    'outbox_relay_answer_seconds_bucket{le="0.2",destination="kafka"} 2',
    'outbox_relay_answer_seconds_bucket{le="2",destination="kafka"} 2',
    'outbox_relay_answer_seconds_bucket{le="5",destination="kafka"} 3',
    'outbox_relay_answer_seconds_bucket{le="+Inf",destination="kafka"} 3',
    'outbox_relay_answer_seconds_count{destination="kafka"} 3',
    'outbox_relay_destination_slow{destination="kafka"} 0',
    'outbox_relay_health_grade{grade="attention"} 1',
    'outbox_relay_health_grade{grade="ok"} 0',
    'outbox_relay_health_cause{code="dead-letters",grade="attention",source="orders.outbox",destination="kafka"} 1',
  ]);
  metrics.stop();
});
const SHOWN = [
  "# TYPE outbox_relay_events_published counter",
  'outbox_relay_events_published_total{source="orders.outbox",destination="kafka"} 10',
  'outbox_relay_delivery_attempts_total{destination="kafka",outcome="delivered",error_type=""} 10',
  'outbox_relay_delivery_attempts_total{destination="kafka",outcome="failed",error_type="MESSAGE_TOO_LARGE"} 1',
  "# TYPE outbox_relay_poll_duration histogram",
  'outbox_relay_poll_duration_bucket{le="0.005",source="orders.outbox"} 1',
  "# TYPE outbox_relay_delivery_latency_seconds histogram",
  'outbox_relay_delivery_latency_seconds_bucket{le="0.01",source="orders.outbox",destination="kafka"} 0',
  'outbox_relay_delivery_latency_seconds_bucket{le="0.025",source="orders.outbox",destination="kafka"} 8',
  'outbox_relay_delivery_latency_seconds_bucket{le="3600",source="orders.outbox",destination="kafka"} 8',
  'outbox_relay_delivery_latency_seconds_bucket{le="+Inf",source="orders.outbox",destination="kafka"} 10',
  'outbox_relay_delivery_latency_seconds_sum{source="orders.outbox",destination="kafka"} 6',
  'outbox_relay_delivery_latency_seconds_count{source="orders.outbox",destination="kafka"} 10',
  'outbox_relay_batch_size_bucket{le="10",source="orders.outbox"} 2',
  "# TYPE outbox_relay_failed_events gauge",
  "outbox_relay_failed_events 2",
  'outbox_relay_lag_seconds{schema="orders"} 90',
  'outbox_relay_pending_events{source="orders.outbox",destination="kafka",state="pending"} 7',
  'outbox_relay_pending_events{source="orders.outbox",destination="kafka",state="behind_dead"} 3',
  'outbox_relay_pending_events{source="orders.outbox",destination="kafka",state="dead"} 2',
  'outbox_relay_pending_events{source="orders.outbox",destination="web",state="pending"} 0',
  'outbox_relay_pending_events{source="orders.outbox",destination="web",state="dead"} 0',
  'outbox_relay_pending_estimated{source="orders.outbox",destination="web"} 1',
  'outbox_relay_unrouted_events{source="orders.outbox"} 12000',
  'outbox_relay_unrouted_estimated{source="orders.outbox"} 1',
  'outbox_relay_oldest_pending_seconds{source="orders.outbox",destination="kafka"} 1.5',
  'outbox_relay_oldest_pending_seconds{source="orders.outbox",destination="web"} 0',
  'outbox_relay_lanes{source="orders.outbox",destination="kafka",state="owned"} 2',
  'outbox_relay_lanes{source="orders.outbox",destination="kafka",state="braked"} 1',
  'outbox_relay_paused{source="orders.outbox",destination="kafka"} 1',
  'outbox_relay_source_broken{source="orders.outbox"} 1',
  'outbox_relay_source_warning{source="orders.outbox",code="ROWS_HIDDEN"} 1',
  'outbox_relay_settle_delays_total{source="orders.outbox",code="DATABASE_BUSY"} 1',
  'outbox_relay_untaken_types{source="orders.outbox"} 2',
  'outbox_relay_destination_state{destination="kafka",state="up"} 0',
  'outbox_relay_destination_state{destination="kafka",state="down"} 1',
  'outbox_relay_telemetry_push_failures_total{receiver="loki"} 1',
  'outbox_relay_telemetry_dropped_total{receiver="loki"} 3',
  `outbox_relay_build_info{version="1.2.3",node="${process.version}"} 1`,
];

test("A11 A13 the metrics have OpenMetrics names, and show a broken source and an open circuit", async () => {
  const last = { pending: 7, isEstimate: false, oldestAgeMs: 1_500, behindDead: 3, dead: 2 };
  const empty = { pending: 0, isEstimate: true, oldestAgeMs: null, behindDead: 0, dead: 0 };
  const { emitter, metrics, pushes, batch } = measured([
    { pipeline, source: "orders.outbox", destination: "kafka", schema: "orders", last, lagMs: 1_500 },
    { pipeline: "w", source: "orders.outbox", destination: "web", schema: "orders", last: empty, lagMs: 0 },
    {
      pipeline: "e",
      source: "orders.outbox_events",
      destination: "kafka",
      schema: "orders",
      last: null,
      lagMs: 90_000,
    },
  ]);
  metrics.expect(ends);
  emitter.emit("SourceAnswered", { pipeline, pollMs: 3 });
  const before = await metrics.text();
  includesAll(before.text, ['outbox_relay_events_published_total{source="orders.outbox",destination="kafka"} 0']);
  emitter.emit("BatchSettled", batch);
  emitter.emit("BatchSettled", batch);
  emitter.emit("IntentRelayFailed", { ...FAILED, scope: "event", errorType: "MESSAGE_TOO_LARGE" });
  emitter.emit("SourceBroken", { pipeline, code: "TABLE_MISSING", reason: "r" });
  for (const code of ["ROWS_HIDDEN", "TABLE_SHARED"] as const) {
    emitter.emit("SourceWarned", { pipeline, code, reason: "r" });
  }
  emitter.emit("SourceWarningEnded", { pipeline, code: "TABLE_SHARED" });
  emitter.emit("SettleDelayed", { pipeline, lane: 0, code: "DATABASE_BUSY", tries: 1, reason: "r" });
  emitter.emit("CircuitOpened", { destination: "kafka", topic: null, reason: "r" });
  for (const lane of [0, 1, 2]) emitter.emit("LaneTaken", { pipeline, lane, epoch: 1n, crashes: 0 });
  emitter.emit("LaneFailed", { pipeline, lane: 1, code: "FENCED", reason: "r" });
  for (const lane of [0, 1]) emitter.emit("LaneBraked", { pipeline, lane, holds: 9 });
  emitter.emit("LaneUnbraked", { pipeline, lane: 1 });
  emitter.emit("PipelinePaused", { pipeline, by: "me", reason: null });
  for (const intentType of ["a", "b", "c"]) {
    emitter.emit("RelayMismatch", { pipeline, intentType, count: 5, recordId: null });
  }
  emitter.emit("RelayMatched", { pipeline, intentType: "c" });
  emitter.emit("RelayMismatch", { pipeline, intentType: "d", count: 1, recordId: "1" });
  pushes.failed("loki");
  pushes.dropped("loki", 3);
  const { contentType, text } = await metrics.text("application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
  assert.match(contentType, /^application\/openmetrics-text/);
  includesAll(text, SHOWN);
  assert.doesNotMatch(text, /code="TABLE_SHARED"/);
  assert.ok(text.endsWith("# EOF\n"));
  metrics.stop();
});

test("A11 a scraper that asks for the older text format gets it, with the same sample names", async () => {
  const { emitter, metrics, batch } = measured([]);
  emitter.emit("BatchSettled", batch);
  const { contentType, text } = await metrics.text("text/plain;version=0.0.4;q=0.5,*/*;q=0.1");
  assert.match(contentType, /^text\/plain; version=0.0.4/);
  includesAll(text, [
    "# TYPE outbox_relay_events_published_total counter",
    'outbox_relay_events_published_total{source="orders.outbox",destination="kafka"} 5',
    "# TYPE outbox_relay_poll_duration histogram",
  ]);
  assert.match(text, /^# HELP outbox_relay_events_published_total /m);
  assert.doesNotMatch(text, /# EOF/);
  const samples = (all: string) => [...all.matchAll(/^([a-z]\w*)/gm)].map(([, name]) => name);
  assert.deepEqual(samples(text), samples((await metrics.text()).text));
  metrics.stop();
});

test("A11 no number of failed events is shown before the first count", async () => {
  const { metrics } = measured([]);
  assert.doesNotMatch((await metrics.text()).text, /^outbox_relay_failed_events/m);
  metrics.stop();
});
