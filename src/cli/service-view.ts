import type { ServiceConfig } from "../config/service-config.ts";
import { systemClock } from "../core/clock.ts";
import { BrokerCheck, unreachableOf } from "../http/broker-check.ts";
import { DatabaseCheck } from "../http/database-check.ts";
import { type Health, healthOf, type Readiness, readinessOf } from "../http/health.ts";
import type { Overview, Series } from "../http/overview.ts";
import type { OverviewFaces } from "../http/overview-routes.ts";
import type { ProbeFaces } from "../http/probe-routes.ts";
import type { Finding } from "../operations/doctor/finding.ts";
import type { OperationTarget } from "../operations/event-source.ts";
import type { ListedLog } from "../operations/log-list.ts";
import type { BudgetedRecorder } from "../telemetry/attempt-recorder.ts";
import { Condition } from "../telemetry/condition.ts";
import type { LogFigures } from "../telemetry/log-gauges.ts";
import { Metrics, type PipelineEnds } from "../telemetry/metrics.ts";
import type { MetricsText } from "../telemetry/metrics-text.ts";
import type { OverviewHistory } from "../telemetry/overview-history.ts";
import type { PushTally } from "../telemetry/push-tally.ts";
import { redactor } from "../telemetry/redaction.ts";
import type { StoreWatch } from "../telemetry/watched-store.ts";
import { type Engine, plainName } from "./engine.ts";
import { LogWatch } from "./log-watch.ts";
import type { OutboxStore } from "./outbox-store.ts";
import { OverviewView } from "./overview-view.ts";
import { ServiceInspection } from "./service-inspection.ts";
import { VERSION } from "./version.ts";

/** How long health and metrics wait for figures before they show the last known ones. */
const FIGURES_MS = 1_000;

interface ViewParts {
  readonly history: OverviewHistory;
  readonly pushes: PushTally;
  readonly target: () => OperationTarget;
  readonly recorder: BudgetedRecorder | null;
}

/** What the service shows of itself: health, readiness, metrics. Knows the engine of the moment, if there is one. */
export class ServiceView implements ProbeFaces, OverviewFaces {
  readonly #config: ServiceConfig;
  readonly #condition = new Condition(systemClock);
  readonly #database: DatabaseCheck;
  readonly #schema: DatabaseCheck;
  /** By destination. */
  readonly #brokers: ReadonlyMap<string, BrokerCheck>;
  readonly #metrics: Metrics;
  readonly #logs: LogWatch;
  readonly #history: OverviewHistory;
  readonly #inspection: ServiceInspection;
  readonly overviews: OverviewView;
  readonly #redact: (text: string) => string;
  #engine: Engine | null = null;
  #lastPollMs: number | null = null;

  constructor(config: ServiceConfig, store: OutboxStore, { history, pushes, recorder, target }: ViewParts) {
    this.#config = config;
    this.#redact = redactor(config.secrets);
    this.#database = new DatabaseCheck(systemClock, () => store.ping());
    this.#schema = new DatabaseCheck(systemClock, () => store.requireFit());
    this.#brokers = new Map(
      config.destinations.map(({ addresses, name }) => [name, new BrokerCheck(systemClock, addresses)]),
    );
    this.#metrics = new Metrics({
      version: VERSION,
      condition: this.#condition,
      backlog: async () => (await this.#engine?.backlog.figures(FIGURES_MS)) ?? [],
      pipelines: () => this.#engine?.pipelines ?? [],
      pushes,
      recorded: () => recorder?.state ?? null,
      logs: () => this.#logFigures(),
    });
    this.#logs = new LogWatch(() => store.logFigures(), systemClock);
    this.#history = history;
    this.#inspection = new ServiceInspection({ config, target, health: () => this.health() });
    this.overviews = new OverviewView({
      clock: systemClock,
      history,
      questions: store.questions,
      destinations: config.destinations.map(({ name }) => name),
      condition: this.#condition,
      engine: () => this.#engine,
      health: () => this.health(),
      unreachable: () => unreachableOf(this.#brokers),
      redact: this.#redact,
    });
  }

  /** Shows this engine from now on; null while there is none. What was known of the one before is forgotten. */
  show(engine: Engine | null): void {
    this.#engine = engine;
    this.#condition.forget();
    if (engine === null) return;
    for (const ends of engine.pipelines) this.#metrics.expect(ends);
    this.#condition.listen(engine.relay);
    this.#metrics.listen(engine.relay);
    const ends = new Map(engine.pipelines.map(({ destination, pipeline }) => [pipeline, plainName(destination)]));
    this.#history.window.listen(engine.relay, (pipeline) => ends.get(pipeline));
    this.#history.markers.listen(engine.relay);
    engine.relay.on("BatchSettled", ({ delivered, pipeline }) => {
      if (delivered > 0) this.#brokers.get(ends.get(pipeline) ?? "")?.delivered();
    });
  }

  /** The database was asked for work, and answered. */
  polled(): void {
    this.#lastPollMs = Date.now();
    this.#database.answered();
  }

  watch({ pipeline, source }: PipelineEnds): StoreWatch {
    return {
      polled: (durationMs) => this.#metrics.polled(source, durationMs),
      answered: () => {
        this.polled();
        this.#condition.answered(pipeline);
      },
    };
  }

  async health(): Promise<Health> {
    const { service } = this.#config;
    const [database, backlog, unreachable] = await Promise.all([
      this.#database.state(),
      this.#engine?.backlog.figures(FIGURES_MS) ?? [],
      unreachableOf(this.#brokers),
    ]);
    const health = healthOf({
      service,
      ...this.#pollFacts(),
      database,
      broken: this.#condition.brokenSources(),
      warnings: this.#condition.warnings(),
      circuits: this.#condition.openCircuits(),
      brakedLanes: this.#condition.brakedLanes(),
      unreachable,
      backlog,
      remarks: this.#engine === null ? ["there is no table to read yet"] : [],
    });
    // Reasons quote what servers said, and nobody knows what that was.
    return JSON.parse(this.#redact(JSON.stringify(health))) as Health;
  }

  /** Those of which nobody runs here too: they keep a log from being pruned as well. */
  async #logFigures(): Promise<readonly LogFigures[]> {
    const figures = await this.#logs.figures(FIGURES_MS);
    if (figures.length === 0) return [];
    const backlog = (await this.#engine?.backlog.figures(FIGURES_MS)) ?? [];
    return figures.map((figure) => {
      const counted = backlog.find(({ pipeline }) => pipeline === figure.pipeline)?.last ?? null;
      return { ...figure, lag: counted?.pending ?? null };
    });
  }

  async readiness(): Promise<Readiness> {
    const { answers, reason } = await this.#schema.state();
    return readinessOf({ answers, reason: reason === null ? null : this.#redact(reason) }, this.#pollFacts());
  }

  overview(): Promise<Overview> {
    return this.overviews.overview();
  }

  series(): Promise<Series> {
    return this.overviews.series();
  }

  logs(): Promise<readonly ListedLog[]> {
    return this.#inspection.logs();
  }

  findings(): Promise<readonly Finding[]> {
    return this.#inspection.findings();
  }

  /** Takes this service's secrets out. */
  redact(text: string): string {
    return this.#redact(text);
  }

  #pollFacts() {
    return {
      nowMs: Date.now(),
      uptimeS: Math.floor(process.uptime()),
      lastPollMs: this.#lastPollMs,
      pollIntervalMs: this.#engine?.pollIntervalMs ?? 0,
    };
  }

  async metrics(accept?: string): Promise<MetricsText> {
    return await this.#metrics.text(accept);
  }

  /** For a push, which has a format of its own. */
  readonly metricFamilies = () => this.#metrics.families();

  stop(): void {
    this.overviews.stop();
    this.#metrics.stop();
  }
}
