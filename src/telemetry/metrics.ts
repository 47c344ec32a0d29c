import { Counter, Gauge, Histogram, type OpenMetricsContentType, Registry } from "prom-client";
import type { BacklogFigures } from "./backlog-watch.ts";
import type { Condition } from "./condition.ts";
import type { Listenable } from "./listenable.ts";

interface MetricsOptions {
  readonly version: string;
  readonly condition: Condition;
  /** Never slow: what is known, if nobody answers. */
  readonly backlog: () => Promise<readonly BacklogFigures[]>;
  /** Pipelines of this process by name, with their two ends. */
  readonly pipelines: () => readonly PipelineEnds[];
}

export interface PipelineEnds {
  readonly pipeline: string;
  readonly source: string;
  readonly destination: string;
}

const POLL_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The families of OpenMetrics: a counter's sample has `_total` behind the name. Never labelled by key or id. */
export class Metrics {
  readonly #registry = openMetricsRegistry();
  readonly #options: MetricsOptions;
  readonly #published = this.#counter("events_published", "Events that were delivered", ["source", "destination"]);
  readonly #attempts = this.#counter("delivery_attempts", "Outcomes of deliveries", ["destination", "outcome"]);
  readonly #polls = new Histogram({
    name: "outbox_relay_poll_duration",
    help: "Seconds from asking a source for events to its answer",
    labelNames: ["source"],
    buckets: POLL_BUCKETS_S,
    registers: [this.#registry],
  });
  readonly #failedEvents = this.#gauge("failed_events", "Dead letters that nobody has resolved");
  readonly #lag = this.#gauge("lag_seconds", "Age of the oldest unpublished event", ["schema"]);
  readonly #pending = this.#gauge("pending_events", "Events that wait, and dead letters", ["source", "state"]);
  readonly #sources = this.#gauge("source_broken", "1 while a source cannot be used", ["source"]);
  readonly #destinations = this.#gauge("destination_state", "1 for the state it is in", ["destination", "state"]);
  readonly #topics = this.#gauge("blocked_topics", "Topics that take nothing at present", ["destination"]);
  readonly #memory = this.#gauge("process_resident_memory_bytes", "Memory of the process", [], "");
  readonly #started = this.#gauge("process_start_time_seconds", "When the process started", [], "");

  constructor(options: MetricsOptions) {
    this.#options = options;
    const build = this.#gauge("build_info", "1, labelled by what runs", ["version", "node"]);
    build.set({ version: options.version, node: process.version }, 1);
    this.#started.set(Date.now() / 1_000 - process.uptime());
    // A gauge without labels shows 0 before it is set, which would be a lie about a database that nobody has asked.
    this.#failedEvents.reset();
    this.#failedEvents.remove();
  }

  get contentType(): string {
    return Registry.OPENMETRICS_CONTENT_TYPE;
  }

  listen(events: Listenable): void {
    events.on("BatchSettled", ({ pipeline, delivered, failed }) => {
      const ends = this.#options.pipelines().find((it) => it.pipeline === pipeline);
      if (ends === undefined) return;
      const { source, destination } = ends;
      if (delivered > 0) this.#published.inc({ source, destination }, delivered);
      if (delivered > 0) this.#attempts.inc({ destination, outcome: "delivered" }, delivered);
      if (failed > 0) this.#attempts.inc({ destination, outcome: "failed" }, failed);
    });
  }

  polled(source: string, durationMs: number): void {
    this.#polls.observe({ source }, durationMs / 1_000);
  }

  /** A counter that nobody has raised yet is 0, not absent: alarms look for changes. */
  expect({ source, destination }: PipelineEnds): void {
    this.#published.inc({ source, destination }, 0);
    for (const outcome of ["delivered", "failed"]) this.#attempts.inc({ destination, outcome }, 0);
  }

  async text(): Promise<string> {
    this.#showCondition();
    this.#showBacklog(await this.#options.backlog());
    this.#memory.set(process.memoryUsage.rss());
    return await this.#registry.metrics();
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
    for (const gauge of [this.#sources, this.#destinations, this.#topics]) gauge.reset();
    const broken = new Set(condition.brokenSources().map(({ pipeline }) => pipeline));
    const circuits = condition.openCircuits();
    for (const { pipeline, source, destination } of pipelines()) {
      this.#sources.set({ source }, broken.has(pipeline) ? 1 : 0);
      const open = circuits.filter((circuit) => circuit.destination === destination);
      const isDown = open.some(({ topic }) => topic === null);
      this.#destinations.set({ destination, state: "up" }, isDown ? 0 : 1);
      this.#destinations.set({ destination, state: "down" }, isDown ? 1 : 0);
      this.#topics.set({ destination }, open.filter(({ topic }) => topic !== null).length);
    }
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> {
    return new Counter({ name: `outbox_relay_${name}`, help, labelNames, registers: [this.#registry] });
  }

  #gauge<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[] = [],
    prefix = "outbox_relay_",
  ): Gauge<Label> {
    return new Gauge({ name: prefix + name, help, labelNames, registers: [this.#registry] });
  }
}

function openMetricsRegistry(): Registry<OpenMetricsContentType> {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  return registry;
}
