import type { ServiceConfig } from "../config/service-config.ts";
import type { AnswerBook } from "../core/answer-times.ts";
import { systemClock } from "../core/clock.ts";
import { gradeOf } from "../core/health-cause.ts";
import { BrokerCheck, unreachableOf } from "../http/health/broker-check.ts";
import { DatabaseCheck } from "../http/health/database-check.ts";
import { type Health, healthOf, type Readiness, readinessOf } from "../http/health/health.ts";
import type { CauseFacts, SlowDestination } from "../http/health/health-causes.ts";
import type { Overview, Series } from "../http/overview.ts";
import type { OverviewFaces } from "../http/routes/overview-routes.ts";
import type { ProbeFaces } from "../http/routes/probe-routes.ts";
import type { Finding } from "../operations/doctor/finding.ts";
import type { OperationTarget } from "../operations/events/event-source.ts";
import type { ListedLog } from "../operations/logs/log-list.ts";
import type { BudgetedRecorder } from "../telemetry/attempts/attempt-recorder.ts";
import { Condition } from "../telemetry/condition.ts";
import { redactor } from "../telemetry/logs/redaction.ts";
import type { FlowMeter } from "../telemetry/metrics/flow-meter.ts";
import type { LogFigures } from "../telemetry/metrics/log-gauges.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import type { MetricsText } from "../telemetry/metrics/metrics-text.ts";
import type { OverviewHistory } from "../telemetry/metrics/overview-history.ts";
import { type KnownStanding, stallOf, standingOfPipeline } from "../telemetry/pipeline-standing.ts";
import type { NoticeState } from "../telemetry/push/webhook-notice.ts";
import type { PushTally } from "../telemetry/push-tally.ts";
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
  /** A further problem to show in health; null when there is none. */
  readonly remark: () => string | null;
}

/** Health, readiness, metrics and overview of the service, about its current engine if it has one. */
export class ServiceView implements ProbeFaces, OverviewFaces {
  readonly #config: ServiceConfig;
  readonly #condition = new Condition(systemClock);
  readonly #database: DatabaseCheck;
  readonly #schema: DatabaseCheck;
  /** By destination name. */
  readonly #brokers: ReadonlyMap<string, BrokerCheck>;
  readonly #metrics: Metrics;
  readonly #logs: LogWatch;
  readonly #history: OverviewHistory;
  readonly #inspection: ServiceInspection;
  readonly overviews: OverviewView;
  readonly #redact: (text: string) => string;
  readonly #remark: () => string | null;
  #engine: Engine | null = null;
  #lastPollMs: number | null = null;
  #upkeep: { readonly reason: string; readonly sinceMs: number } | null = null;

  constructor(config: ServiceConfig, store: OutboxStore, { history, pushes, recorder, remark, target }: ViewParts) {
    this.#config = config;
    this.#redact = redactor(config.secrets);
    this.#remark = remark;
    this.#database = new DatabaseCheck(systemClock, () => store.ping());
    this.#schema = new DatabaseCheck(systemClock, () => store.requireFit());
    this.#brokers = new Map(
      config.destinations.map(({ addresses, name }) => [name, new BrokerCheck(systemClock, addresses)]),
    );
    this.#metrics = history.metrics({
      version: VERSION,
      condition: this.#condition,
      backlog: async () => (await this.#engine?.backlog.figures(FIGURES_MS)) ?? [],
      unrouted: () => this.#engine?.backlog.unrouted ?? [],
      pipelines: () => this.#engine?.pipelines ?? [],
      pushes,
      answers: history.answers,
      recorded: () => recorder?.state ?? null,
      logs: () => this.#logFigures(),
      causes: async () => (await this.health()).causes,
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

  /** Shows this engine from now on; null while there is none. Forgets what was known of the previous one. */
  show(engine: Engine | null): void {
    this.#engine = engine;
    this.#condition.forget();
    if (engine === null) return;
    for (const ends of engine.pipelines) this.#metrics.expect(ends);
    this.#condition.listen(engine.relay);
    this.#metrics.listen(engine.relay, engine.pipelines);
    const ends = new Map(engine.pipelines.map(({ destination, pipeline }) => [pipeline, plainName(destination)]));
    this.#history.window.listen(engine.relay, (pipeline) => ends.get(pipeline));
    this.#history.markers.listen(engine.relay);
    engine.relay.on("SourceAnswered", () => this.polled());
    engine.relay.on("BatchSettled", ({ delivered, pipeline }) => {
      if (delivered > 0) this.#brokers.get(ends.get(pipeline) ?? "")?.delivered();
    });
  }

  /** Call when the database has answered a request for work. */
  polled(): void {
    this.#lastPollMs = Date.now();
    this.#database.answered();
  }

  async health(): Promise<Health> {
    const { service } = this.#config;
    const [database, backlog, unreachable, standings] = await Promise.all([
      this.#database.state(),
      this.#engine?.backlog.figures(FIGURES_MS) ?? [],
      unreachableOf(this.#brokers),
      this.overviews.standings(),
    ]);
    const health = healthOf({
      service,
      ...this.#pollFacts(),
      database,
      broken: this.#condition.brokenSources(),
      warnings: this.#condition.warnings(),
      circuits: this.#condition.openCircuits(),
      brakedLanes: this.#condition.brakedLanes(),
      failingLanes: this.#condition.failingLanes(),
      failedChores: this.#condition.failedChores(),
      upkeep: this.#upkeep,
      slow: slowIn(this.#history.answers),
      ...pipelineFacts(this.#engine, this.#condition, this.#history.flow, standings, unreachable),
      unreachable,
      backlog,
      unrouted: this.#engine?.backlog.unrouted ?? [],
      remarks: this.#engine === null ? ["there is no table to read yet"] : [],
      notifier: this.#remark(),
    });
    // Reasons quote what servers said, which can contain a secret.
    return JSON.parse(this.#redact(JSON.stringify(health))) as Health;
  }

  /** The state for a notification: codes and names, no reasons. */
  async noticeState(): Promise<NoticeState> {
    // A failing webhook cannot report its own failure.
    const causes = (await this.health()).causes.filter(({ code }) => code !== "notifications-failing");
    const counts = [...(this.#engine?.backlog.counts.values() ?? [])];
    const counted = counts.flatMap(({ found }) => (found === null ? [] : [found.dead]));
    const named = causes.map(({ code, destination, pipeline, source }) => {
      return [code, pipeline ?? destination ?? source].filter((part) => part !== null).join(" ");
    });
    return {
      grade: gradeOf(causes),
      causes: [...new Set(named)],
      deadLetters: counted.length === 0 ? null : counted.reduce((sum, dead) => sum + dead, 0),
    };
  }

  /** Call with the result of each upkeep: the reason of its failure, or null. */
  noteUpkeep(reason: string | null): void {
    if (reason === null) this.#upkeep = null;
    else this.#upkeep = { reason, sinceMs: this.#upkeep?.sinceMs ?? Date.now() };
  }

  /** Includes pipelines that do not run in this process: they hold back the pruning of a log too. */
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

  /** Removes this service's secrets from a text. */
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

  /** For a push, which has its own format. */
  readonly metricFamilies = () => this.#metrics.families();

  stop(): void {
    this.overviews.stop();
  }
}

/** The destinations that answer slower than usual. */
function slowIn(answers: AnswerBook): readonly SlowDestination[] {
  return [...answers.all()].flatMap(([destination, times]) => {
    const { slow } = times.figures();
    return slow === null ? [] : [{ destination, ...slow }];
  });
}

/** The facts from which health judges each pipeline of this process. */
function pipelineFacts(
  engine: Pick<Engine, "backlog" | "pipelines"> | null,
  condition: Condition,
  flow: FlowMeter,
  standings: ReadonlyMap<string, KnownStanding>,
  unreachable: readonly string[],
): Pick<CauseFacts, "pipelines" | "stalled" | "untaken"> {
  const ends = engine?.pipelines ?? [];
  const of = (pipeline: string) => ({
    count: engine?.backlog.counts.get(pipeline),
    known: standings.get(pipeline) ?? null,
  });
  return {
    pipelines: ends.map(({ pipeline }) => {
      const { known, count } = of(pipeline);
      return standingOfPipeline(pipeline, known, count, condition);
    }),
    stalled: ends.flatMap(({ destination, pipeline }) => {
      const idleForMs = flow.idleForMs(pipeline);
      return stallOf({ pipeline, destination, ...of(pipeline), idleForMs, unreachable }, condition) ?? [];
    }),
    untaken: ends.flatMap(({ pipeline }) => {
      const types = condition.unmatchedTypesOf(pipeline);
      const sinceMs = condition.unmatchedSinceMs(pipeline);
      return types === 0 ? [] : [{ pipeline, types, ...(sinceMs === undefined ? {} : { sinceMs }) }];
    }),
  };
}
