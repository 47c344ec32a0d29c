import { Counter, Gauge, Histogram, type OpenMetricsContentType, Registry } from "prom-client";
import type { AnswerBook } from "../../core/answer-times.ts";
import type { HealthCause } from "../../core/health-cause.ts";
import type { TechnicalEventMap } from "../../ports/technical-events.ts";
import type { BacklogFigures, UnroutedFigures } from "../backlog-watch.ts";
import type { Condition } from "../condition.ts";
import type { Listenable } from "../listenable.ts";
import type { MetricFamily } from "../push/write-request.ts";
import type { PushTally } from "../push-tally.ts";
import { AnswerMetrics } from "./answer-metrics.ts";
import { HealthGauges } from "./health-gauges.ts";
import { LatencyHistogram } from "./latency-histogram.ts";
import { type LogFigures, LogGauges } from "./log-gauges.ts";
import { type MetricsText, prometheusText, wantsOpenMetrics } from "./metrics-text.ts";
import { ProcessGauges } from "./process-gauges.ts";

/** What the metrics are read from. */
export interface MetricsOptions {
  readonly version: string;
  readonly condition: Condition;
  /** Must answer fast, with the last known figures if needed. */
  readonly backlog: () => Promise<readonly BacklogFigures[]>;
  /** From the same count as the backlog. */
  readonly unrouted?: () => readonly UnroutedFigures[];
  /** The pipelines of this process. */
  readonly pipelines: () => readonly PipelineEnds[];
  readonly pushes: PushTally;
  /** The recorder's counts; null where attempts are not recorded. */
  readonly recorded?: () => Recorded | null;
  /** Absent where answer times are not measured. */
  readonly answers?: AnswerBook;
  /** Must answer fast too; absent where no source is a log. */
  readonly logs?: () => Promise<readonly LogFigures[]>;
  /** The current health causes. */
  readonly causes?: () => Promise<readonly HealthCause[]>;
}

interface Recorded {
  readonly stored: number;
  readonly dropped: number;
}

/** A pipeline's name, with its source and destination. */
export interface PipelineEnds {
  readonly pipeline: string;
  readonly source: string;
  readonly destination: string;
}

const POLL_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const BATCH_BUCKETS = [1, 5, 10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];

/** The metric families, in OpenMetrics: a counter's sample ends in `_total`. No label holds a key or an id. */
export class Metrics {
  readonly #registry = openMetricsRegistry();
  #options: MetricsOptions;
  /** Sums of the recorders before the current one. */
  #recordedBefore: Recorded = { stored: 0, dropped: 0 };
  readonly #published = this.#counter("events_published", "Events delivered and settled", ["source", "destination"]);
  readonly #attempts = this.#counter(
    "delivery_attempts",
    "Attempts to deliver an event; error_type is the code of the error, empty when there was none",
    ["destination", "outcome", "error_type"],
  );
  readonly #latency = new LatencyHistogram({
    name: "outbox_relay_delivery_latency_seconds",
    help: "Seconds from the writing of an event to the moment its delivery was acknowledged and settled",
    labelNames: ["source", "destination"],
    registers: [this.#registry],
  });
  readonly #batches = this.#histogram("batch_size", "Events whose outcomes were written together", BATCH_BUCKETS);
  readonly #polls = this.#histogram(
    "poll_duration",
    "Seconds from asking a source for events to its answer",
    POLL_BUCKETS_S,
  );
  readonly #delays = this.#counter("settle_delays", "Writes of outcomes that the database refused, to be retried", [
    "source",
    "code",
  ]);
  readonly #failedEvents = this.#gauge("failed_events", "Open dead letters");
  readonly #lag = this.#gauge(
    "lag_seconds",
    "Age of the oldest unpublished event of a schema; grows while the database does not answer",
    ["schema"],
  );
  readonly #pending = this.#gauge(
    "pending_events",
    "Waiting events by pipeline and state: pending, behind_dead (behind a dead letter of their key) or dead",
    ["source", "destination", "state"],
  );
  readonly #pipelineLag = this.#gauge(
    "oldest_pending_seconds",
    "Seconds for which the oldest pending event of a pipeline has been due; 0 when nothing is pending",
    ["source", "destination"],
  );
  readonly #estimated = this.#gauge(
    "pending_estimated",
    "1 while the numbers of pending events of a pipeline are estimates",
    ["source", "destination"],
  );
  readonly #unrouted = this.#gauge("unrouted_events", "Waiting events that match no route", ["source"]);
  readonly #unroutedEstimated = this.#gauge(
    "unrouted_estimated",
    "1 while the number of events that match no route is an estimate",
    ["source"],
  );
  readonly #lanes = this.#gauge("lanes", "Lanes of this instance by state: owned, or braked (accepts no new events)", [
    "source",
    "destination",
    "state",
  ]);
  readonly #paused = this.#gauge("paused", "1 while the pipeline is paused", ["source", "destination"]);
  readonly #limits = this.#gauge(
    "limit_per_second",
    "Rate limit of each instance in events per second; 0 without a limit",
    ["source", "destination"],
  );
  readonly #untaken = this.#gauge("untaken_types", "Types of waiting events that no running relay matches", ["source"]);
  readonly #sources = this.#gauge("source_broken", "1 while a source cannot be read", ["source"]);
  readonly #warnings = this.#gauge("source_warning", "1 while a working source has a warning", ["source", "code"]);
  readonly #destinations = this.#gauge("destination_state", "1 for the destination's current state", [
    "destination",
    "state",
  ]);
  readonly #topics = this.#gauge("blocked_topics", "Topics with an open circuit", ["destination"]);
  readonly #pushFailures = this.#counter(
    "telemetry_push_failures",
    "Failed pushes of metrics, log lines, spans or notifications; delivery is not affected",
    ["receiver"],
  );
  readonly #pushDrops = this.#counter(
    "telemetry_dropped",
    "Log lines or spans dropped because their receiver did not accept them",
    ["receiver"],
  );
  readonly #recorded = this.#counter("attempts_recorded", "Recorded attempts", []);
  readonly #recordDrops = this.#counter(
    "attempts_dropped",
    "Attempts not recorded, because the database did not accept them in time",
    [],
  );
  readonly #conditionGauges: readonly { reset(): void }[] = [
    this.#sources,
    this.#warnings,
    this.#destinations,
    this.#topics,
    this.#lanes,
    this.#untaken,
    this.#paused,
    this.#limits,
  ];
  readonly #logs = new LogGauges(this.#registry as never);
  readonly #answers: AnswerMetrics | null;
  readonly #health = new HealthGauges(this.#registry as never);
  readonly #process = new ProcessGauges(this.#registry as never);

  constructor(options: MetricsOptions) {
    this.#options = options;
    this.#answers = options.answers === undefined ? null : new AnswerMetrics(this.#registry as never, options.answers);
    const build = this.#gauge("build_info", "1, labelled by the version of the relay and of Node", ["version", "node"]);
    build.set({ version: options.version, node: process.version }, 1);
    this.#forgetFailedEvents();
  }

  /** Switches to another relay. Counters continue: a reset would look like a restart. */
  show(options: MetricsOptions): void {
    this.#recordedBefore = this.#allRecorded();
    this.#options = options;
    this.#forgetFailedEvents();
  }

  /** Removes the gauge's sample: without labels it would show 0 before the database was ever asked. */
  #forgetFailedEvents(): void {
    this.#failedEvents.reset();
    this.#failedEvents.remove();
  }

  /** A replaced relay stays subscribed: it still finishes what is in flight. */
  listen(events: Listenable, pipelines: readonly PipelineEnds[]): void {
    const ends = new Map(pipelines.map((it) => [it.pipeline, it]));
    events.on("BatchSettled", (batch) => this.#settled(batch, ends.get(batch.pipeline)));
    events.on("SettleDelayed", ({ pipeline, code }) => {
      const source = ends.get(pipeline)?.source;
      if (source !== undefined) this.#delays.inc({ source, code });
    });
    events.on("SourceAnswered", ({ pipeline, pollMs }) => {
      const source = ends.get(pipeline)?.source;
      if (source !== undefined && pollMs !== null) this.#polls.observe({ source }, pollMs / 1_000);
    });
    events.on("IntentRelayFailed", ({ pipeline, errorType }) => {
      const destination = ends.get(pipeline)?.destination;
      if (destination === undefined) return;
      this.#attempts.inc({ destination, outcome: "failed", error_type: errorType });
    });
  }

  /** Starts the counters at 0 instead of leaving them absent: alerts watch for increases. */
  expect({ source, destination }: PipelineEnds): void {
    this.#published.inc({ source, destination }, 0);
    this.#attempts.inc({ destination, outcome: "delivered", error_type: "" }, 0);
    this.#delays.inc({ source, code: "DATABASE_BUSY" }, 0);
  }

  /** In the format that the caller accepts. */
  async text(accept = ""): Promise<MetricsText> {
    await this.#refresh();
    const text = await this.#registry.metrics();
    return wantsOpenMetrics(accept)
      ? { contentType: Registry.OPENMETRICS_CONTENT_TYPE, text }
      : { contentType: Registry.PROMETHEUS_CONTENT_TYPE, text: prometheusText(text) };
  }

  /** The families with their samples, for other formats. */
  async families(): Promise<readonly MetricFamily[]> {
    await this.#refresh();
    return (await this.#registry.getMetricsAsJSON()) as unknown as MetricFamily[];
  }

  stop(): void {
    this.#process.stop();
  }

  #settled({ delivered, failed, latency }: TechnicalEventMap["BatchSettled"], ends: PipelineEnds | undefined): void {
    if (ends === undefined) return;
    const { source, destination } = ends;
    if (delivered + failed > 0) this.#batches.observe({ source }, delivered + failed);
    if (delivered === 0) return;
    this.#published.inc({ source, destination }, delivered);
    this.#attempts.inc({ destination, outcome: "delivered", error_type: "" }, delivered);
    if (latency !== null) this.#latency.add({ source, destination }, latency);
  }

  async #refresh(): Promise<void> {
    this.#showCondition();
    this.#showPushes();
    this.#showRecorded();
    const { backlog, causes, logs } = this.#options;
    // Concurrently: each waits for the database, and in sequence a scrape would time out.
    const [figures, readers, found] = await Promise.all([backlog(), logs?.() ?? [], causes?.() ?? []]);
    this.#showBacklog(figures);
    this.#logs.show(readers);
    this.#answers?.refresh();
    this.#health.show(found);
    this.#process.refresh();
  }

  #showBacklog(figures: readonly BacklogFigures[]): void {
    const unrouted = [this.#unrouted, this.#unroutedEstimated];
    for (const gauge of [this.#lag, this.#pending, this.#pipelineLag, this.#estimated, ...unrouted]) gauge.reset();
    const schemas = Map.groupBy(figures, ({ schema }) => schema);
    for (const [schema, ofSchema] of schemas) {
      this.#lag.set({ schema }, Math.max(...ofSchema.map(({ lagMs }) => lagMs)) / 1_000);
    }
    for (const { destination, lagMs, source } of figures) this.#pipelineLag.set({ source, destination }, lagMs / 1_000);
    const known = figures.flatMap(({ last, ...ends }) => (last === null ? [] : [{ ...ends, ...last }]));
    for (const { behindDead, dead, destination, isEstimate, pending, source } of known) {
      this.#pending.set({ source, destination, state: "pending" }, pending);
      this.#pending.set({ source, destination, state: "behind_dead" }, behindDead);
      this.#pending.set({ source, destination, state: "dead" }, dead);
      this.#estimated.set({ source, destination }, isEstimate ? 1 : 0);
    }
    for (const { events, isEstimate, source } of this.#options.unrouted?.() ?? []) {
      this.#unrouted.set({ source }, events);
      this.#unroutedEstimated.set({ source }, isEstimate ? 1 : 0);
    }
    if (known.length > 0) this.#failedEvents.set(known.reduce((sum, { dead }) => sum + dead, 0));
  }

  #showCondition(): void {
    const { condition, pipelines } = this.#options;
    for (const gauge of this.#conditionGauges) gauge.reset();
    const broken = new Set(condition.brokenSources().map(({ pipeline }) => pipeline));
    const circuits = condition.openCircuits();
    const braked = condition.brakedLanes();
    const ends = pipelines();
    for (const { pipeline, source, destination } of ends) {
      const isBroken = ends.some((it) => it.source === source && broken.has(it.pipeline));
      this.#sources.set({ source }, isBroken ? 1 : 0);
      for (const { code } of condition.warnings().filter((warning) => warning.pipeline === pipeline)) {
        this.#warnings.set({ source, code }, 1);
      }
      this.#lanes.set({ source, destination, state: "owned" }, condition.lanesOf(pipeline));
      const slowed = braked.filter((lane) => lane.pipeline === pipeline).length;
      this.#lanes.set({ source, destination, state: "braked" }, slowed);
      this.#untaken.inc({ source }, condition.unmatchedTypesOf(pipeline));
      this.#paused.set({ source, destination }, condition.isPaused(pipeline) ? 1 : 0);
      this.#limits.set({ source, destination }, condition.limitOf(pipeline) ?? 0);
      const open = circuits.filter((circuit) => circuit.destination === destination);
      const isDown = open.some(({ topic }) => topic === null);
      this.#destinations.set({ destination, state: "up" }, isDown ? 0 : 1);
      this.#destinations.set({ destination, state: "down" }, isDown ? 1 : 0);
      this.#topics.set({ destination }, open.filter(({ topic }) => topic !== null).length);
    }
  }

  #showPushes(): void {
    for (const counter of [this.#pushFailures, this.#pushDrops]) counter.reset();
    for (const { receiver, failures, dropped } of this.#options.pushes.figures()) {
      this.#pushFailures.inc({ receiver }, failures);
      this.#pushDrops.inc({ receiver }, dropped);
    }
  }

  #showRecorded(): void {
    const { dropped, stored } = this.#allRecorded();
    for (const counter of [this.#recorded, this.#recordDrops]) counter.reset();
    this.#recorded.inc(stored);
    this.#recordDrops.inc(dropped);
  }

  #allRecorded(): Recorded {
    const { stored = 0, dropped = 0 } = this.#options.recorded?.() ?? {};
    return { stored: this.#recordedBefore.stored + stored, dropped: this.#recordedBefore.dropped + dropped };
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> {
    return new Counter({ name: `outbox_relay_${name}`, help, labelNames, registers: [this.#registry] });
  }

  #gauge<Label extends string>(name: string, help: string, labelNames: Label[] = []): Gauge<Label> {
    return new Gauge({ name: `outbox_relay_${name}`, help, labelNames, registers: [this.#registry] });
  }

  #histogram(name: string, help: string, buckets: number[]): Histogram<"source"> {
    const registers = [this.#registry];
    return new Histogram({ name: `outbox_relay_${name}`, help, labelNames: ["source"], buckets, registers });
  }
}

function openMetricsRegistry(): Registry<OpenMetricsContentType> {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  return registry;
}
