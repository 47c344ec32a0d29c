import { Counter, Gauge, Histogram, type OpenMetricsContentType, Registry } from "prom-client";
import type { TechnicalEventMap } from "../ports/technical-events.ts";
import type { BacklogFigures } from "./backlog-watch.ts";
import type { Condition } from "./condition.ts";
import { LatencyHistogram } from "./latency-histogram.ts";
import type { Listenable } from "./listenable.ts";
import { type LogFigures, LogGauges } from "./log-gauges.ts";
import { type MetricsText, prometheusText, wantsOpenMetrics } from "./metrics-text.ts";
import { ProcessGauges } from "./process-gauges.ts";
import type { MetricFamily } from "./push/write-request.ts";
import type { PushTally } from "./push-tally.ts";

interface MetricsOptions {
  readonly version: string;
  readonly condition: Condition;
  /** Never slow: what is known, if nobody answers. */
  readonly backlog: () => Promise<readonly BacklogFigures[]>;
  /** Pipelines of this process by name, with their two ends. */
  readonly pipelines: () => readonly PipelineEnds[];
  readonly pushes: PushTally;
  /** How many attempts were kept for people; null where nobody keeps them. */
  readonly recorded?: () => Recorded | null;
  /** Never slow either; absent where nothing is read by position. */
  readonly logs?: () => Promise<readonly LogFigures[]>;
}

interface Recorded {
  readonly stored: number;
  readonly dropped: number;
}

export interface PipelineEnds {
  readonly pipeline: string;
  readonly source: string;
  readonly destination: string;
}

const POLL_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const BATCH_BUCKETS = [1, 5, 10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];

/** The families of OpenMetrics: a counter's sample has `_total` behind the name. Never labelled by key or id. */
export class Metrics {
  readonly #registry = openMetricsRegistry();
  readonly #options: MetricsOptions;
  readonly #published = this.#counter("events_published", "Events that were delivered and marked", [
    "source",
    "destination",
  ]);
  readonly #attempts = this.#counter(
    "delivery_attempts",
    "Attempts to deliver an event; error_type is the code of the error, empty when there was none",
    ["destination", "outcome", "error_type"],
  );
  readonly #latency = new LatencyHistogram({
    name: "outbox_relay_delivery_latency_seconds",
    help: "Seconds from the writing of an event to the moment its delivery was acknowledged and marked",
    labelNames: ["source", "destination"],
    registers: [this.#registry],
  });
  readonly #batches = this.#histogram("batch_size", "Events whose outcomes were written together", BATCH_BUCKETS);
  readonly #polls = this.#histogram(
    "poll_duration",
    "Seconds from asking a source for events to its answer",
    POLL_BUCKETS_S,
  );
  readonly #delays = this.#counter("settle_delays", "Writes of outcomes that the database did not take; tried again", [
    "source",
    "code",
  ]);
  readonly #failedEvents = this.#gauge("failed_events", "Dead letters that nobody has resolved");
  readonly #lag = this.#gauge(
    "lag_seconds",
    "Age of the oldest unpublished event of a schema; it grows on while the database cannot be asked",
    ["schema"],
  );
  readonly #pending = this.#gauge("pending_events", "Events that wait for the relay, and dead letters", [
    "source",
    "state",
  ]);
  readonly #lanes = this.#gauge("lanes", "Lanes that this instance owns, and those of them that take nothing new", [
    "source",
    "state",
  ]);
  readonly #paused = this.#gauge("paused", "1 while a person has stopped the pipeline", ["source", "destination"]);
  readonly #limits = this.#gauge(
    "limit_per_second",
    "Events a second that a person lets each instance send; 0 without a limit",
    ["source", "destination"],
  );
  readonly #untaken = this.#gauge("untaken_types", "Types of waiting events that no running relay takes", ["source"]);
  readonly #sources = this.#gauge("source_broken", "1 while a source cannot be used", ["source"]);
  readonly #warnings = this.#gauge("source_warning", "1 while something is wrong with a source that works", [
    "source",
    "code",
  ]);
  readonly #destinations = this.#gauge("destination_state", "1 for the state it is in", ["destination", "state"]);
  readonly #topics = this.#gauge("blocked_topics", "Topics that take nothing at present", ["destination"]);
  readonly #pushFailures = this.#counter(
    "telemetry_push_failures",
    "Pushes of metrics, log lines or spans that failed; delivery does not notice",
    ["receiver"],
  );
  readonly #pushDrops = this.#counter(
    "telemetry_dropped",
    "Log lines or spans that were given up because their receiver took nothing",
    ["receiver"],
  );
  readonly #recorded = this.#counter("attempts_recorded", "Attempts that were kept for people to look at", []);
  readonly #recordDrops = this.#counter(
    "attempts_dropped",
    "Attempts that were not kept, because the database took nothing for too long",
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
  readonly #process = new ProcessGauges(this.#registry as never);

  constructor(options: MetricsOptions) {
    this.#options = options;
    const build = this.#gauge("build_info", "1, labelled by what runs", ["version", "node"]);
    build.set({ version: options.version, node: process.version }, 1);
    // A gauge without labels shows 0 before it is set, which would be a lie about a database that nobody has asked.
    this.#failedEvents.reset();
    this.#failedEvents.remove();
  }

  listen(events: Listenable): void {
    events.on("BatchSettled", (batch) => this.#settled(batch));
    events.on("SettleDelayed", (event) => this.#delayed(event));
    events.on("IntentRelayFailed", ({ pipeline, errorType }) => {
      const destination = this.#endsOf(pipeline)?.destination;
      if (destination === undefined) return;
      this.#attempts.inc({ destination, outcome: "failed", error_type: errorType });
    });
  }

  #delayed({ pipeline, code }: TechnicalEventMap["SettleDelayed"]): void {
    const source = this.#endsOf(pipeline)?.source;
    if (source !== undefined) this.#delays.inc({ source, code });
  }

  polled(source: string, durationMs: number): void {
    this.#polls.observe({ source }, durationMs / 1_000);
  }

  /** A counter that nobody has raised yet is 0, not absent: alarms look for changes. */
  expect({ source, destination }: PipelineEnds): void {
    this.#published.inc({ source, destination }, 0);
    this.#attempts.inc({ destination, outcome: "delivered", error_type: "" }, 0);
    this.#delays.inc({ source, code: "DATABASE_BUSY" }, 0);
  }

  /** In the format that the asker wants. */
  async text(accept = ""): Promise<MetricsText> {
    await this.#refresh();
    const text = await this.#registry.metrics();
    return wantsOpenMetrics(accept)
      ? { contentType: Registry.OPENMETRICS_CONTENT_TYPE, text }
      : { contentType: Registry.PROMETHEUS_CONTENT_TYPE, text: prometheusText(text) };
  }

  /** The families with their samples, for whoever writes them in another format. */
  async families(): Promise<readonly MetricFamily[]> {
    await this.#refresh();
    return (await this.#registry.getMetricsAsJSON()) as unknown as MetricFamily[];
  }

  stop(): void {
    this.#process.stop();
  }

  #settled({ pipeline, delivered, failed, latency }: TechnicalEventMap["BatchSettled"]): void {
    const ends = this.#endsOf(pipeline);
    if (ends === undefined) return;
    const { source, destination } = ends;
    if (delivered + failed > 0) this.#batches.observe({ source }, delivered + failed);
    if (delivered === 0) return;
    this.#published.inc({ source, destination }, delivered);
    this.#attempts.inc({ destination, outcome: "delivered", error_type: "" }, delivered);
    if (latency !== null) this.#latency.add({ source, destination }, latency);
  }

  #endsOf(pipeline: string): PipelineEnds | undefined {
    return this.#options.pipelines().find((it) => it.pipeline === pipeline);
  }

  async #refresh(): Promise<void> {
    this.#showCondition();
    this.#showPushes();
    this.#showRecorded();
    this.#showBacklog(await this.#options.backlog());
    this.#logs.show((await this.#options.logs?.()) ?? []);
    this.#process.refresh();
  }

  #showBacklog(figures: readonly BacklogFigures[]): void {
    for (const gauge of [this.#lag, this.#pending]) gauge.reset();
    const schemas = Map.groupBy(figures, ({ schema }) => schema);
    for (const [schema, ofSchema] of schemas) {
      this.#lag.set({ schema }, Math.max(...ofSchema.map(({ lagMs }) => lagMs)) / 1_000);
    }
    const known = figures.flatMap(({ source, last }) => (last === null ? [] : [{ source, ...last }]));
    for (const { source, pending, dead } of known) {
      this.#pending.set({ source, state: "pending" }, pending);
      this.#pending.set({ source, state: "dead" }, dead);
    }
    if (known.length > 0) this.#failedEvents.set(known.reduce((sum, { dead }) => sum + dead, 0));
  }

  #showCondition(): void {
    const { condition, pipelines } = this.#options;
    for (const gauge of this.#conditionGauges) gauge.reset();
    const broken = new Set(condition.brokenSources().map(({ pipeline }) => pipeline));
    const circuits = condition.openCircuits();
    const braked = condition.brakedLanes();
    for (const { pipeline, source, destination } of pipelines()) {
      this.#sources.set({ source }, broken.has(pipeline) ? 1 : 0);
      for (const { code } of condition.warnings().filter((warning) => warning.pipeline === pipeline)) {
        this.#warnings.set({ source, code }, 1);
      }
      this.#lanes.set({ source, state: "owned" }, condition.lanesOf(pipeline));
      this.#lanes.set({ source, state: "braked" }, braked.filter((lane) => lane.pipeline === pipeline).length);
      this.#untaken.inc({ source }, condition.untakenTypesOf(pipeline));
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
    const { stored = 0, dropped = 0 } = this.#options.recorded?.() ?? {};
    for (const counter of [this.#recorded, this.#recordDrops]) counter.reset();
    this.#recorded.inc(stored);
    this.#recordDrops.inc(dropped);
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
