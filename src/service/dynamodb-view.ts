import { type AccessConfig, NO_ACCESS_RULES } from "../config/access-config.ts";
import { type EffectiveSetting, effectiveSettings } from "../config/reading/effective-settings.ts";
import type { DynamoDbRunConfig } from "../config/sources/dynamodb-config.ts";
import { systemClock } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";
import { BrokerCheck, unreachableOf } from "../http/health/broker-check.ts";
import { DatabaseCheck } from "../http/health/database-check.ts";
import { type Health, healthOf, type Readiness, readinessOf } from "../http/health/health.ts";
import { findingsOf, type Overview, type Series } from "../http/overview.ts";
import type { HttpFaces } from "../http/server.ts";
import type { Finding } from "../operations/doctor/finding.ts";
import type { OperationTarget } from "../operations/events/event-source.ts";
import type { ListedLog } from "../operations/logs/log-list.ts";
import type { Backlog } from "../ports/queue-store.ts";
import { BacklogWatch, countBacklogs } from "../telemetry/backlog-watch.ts";
import { Condition } from "../telemetry/condition.ts";
import type { Listenable } from "../telemetry/listenable.ts";
import { redactor } from "../telemetry/logs/redaction.ts";
import { Metrics, type PipelineEnds } from "../telemetry/metrics/metrics.ts";
import type { MetricsText } from "../telemetry/metrics/metrics-text.ts";
import { OverviewHistory } from "../telemetry/metrics/overview-history.ts";
import { standingOfPipeline } from "../telemetry/pipeline-standing.ts";
import type { PushTally } from "../telemetry/push-tally.ts";
import { OverviewView } from "./overview-view.ts";
import { VERSION } from "./version.ts";

interface ViewOptions {
  readonly config: DynamoDbRunConfig;
  readonly events: Listenable;
  readonly pipelines: readonly PipelineEnds[];
  /** The addresses of each pipeline's destination, in the order of `pipelines`. */
  readonly addresses: readonly (readonly string[])[];
  readonly backlog: (type: string) => Promise<Backlog>;
  readonly ping: () => Promise<void>;
  readonly pushes: PushTally;
}

/** How long health and metrics wait for figures before they show the last known ones. */
const FIGURES_MS = 1_000;

/** Health, metrics and overview of an intent runner. */
export class DynamoDbView implements HttpFaces {
  readonly #config: DynamoDbRunConfig;
  readonly #condition = new Condition(systemClock);
  readonly #database: DatabaseCheck;
  readonly #backlog: BacklogWatch;
  readonly #metrics: Metrics;
  readonly #pipelines: readonly PipelineEnds[];
  /** By destination name. */
  readonly #brokers: ReadonlyMap<string, BrokerCheck>;
  readonly #overviews: OverviewView;
  readonly redact: (text: string) => string;
  #lastPollMs: number | null = null;

  constructor({ addresses, backlog, config, events, ping, pipelines, pushes }: ViewOptions) {
    this.#config = config;
    this.#pipelines = pipelines;
    this.#brokers = new Map(
      pipelines.map(({ destination }, at) => [destination, new BrokerCheck(systemClock, addresses[at] ?? [])]),
    );
    this.redact = redactor(config.secrets);
    this.#database = new DatabaseCheck(systemClock, ping);
    const watched = pipelines.map((ends, at) => {
      const { type } = config.relays[at]!.relay;
      const count = () => countBacklogs({}, new Map([[ends.pipeline, () => backlog(type)]]));
      return { source: ends.source, schema: config.table, pipelines: [ends], count };
    });
    this.#backlog = new BacklogWatch(watched, systemClock);
    this.#metrics = new Metrics({
      version: VERSION,
      condition: this.#condition,
      backlog: () => this.#backlog.figures(FIGURES_MS),
      unrouted: () => this.#backlog.unrouted,
      pipelines: () => pipelines,
      pushes,
      causes: async () => (await this.health()).causes,
    });
    for (const ends of pipelines) this.#metrics.expect(ends);
    const ends = new Map(pipelines.map(({ destination, pipeline }) => [pipeline, destination]));
    events.on("BatchSettled", ({ delivered, pipeline }) => {
      if (delivered > 0) this.#brokers.get(ends.get(pipeline) ?? "")?.delivered();
    });
    const history = new OverviewHistory(systemClock);
    history.window.listen(events, (pipeline) => ends.get(pipeline));
    history.markers.listen(events);
    this.#overviews = new OverviewView({
      clock: systemClock,
      history,
      questions: null,
      destinations: [],
      condition: this.#condition,
      engine: () => ({ backlog: this.#backlog, pipelines }),
      health: () => this.health(),
      unreachable: () => unreachableOf(this.#brokers),
      redact: this.redact,
    });
    void this.#overviews.start();
    this.#condition.listen(events);
    this.#metrics.listen(events, pipelines);
  }

  answered(): void {
    this.#lastPollMs = Date.now();
    this.#database.answered();
    for (const { pipeline } of this.#pipelines) this.#condition.answered(pipeline);
  }

  async health(): Promise<Health> {
    const [database, backlog, unreachable] = await Promise.all([
      this.#database.state(),
      this.#backlog.figures(FIGURES_MS),
      unreachableOf(this.#brokers),
    ]);
    const health = healthOf({
      service: this.#config.service,
      ...this.#pollFacts(),
      database,
      databaseName: "dynamodb",
      broken: this.#condition.brokenSources(),
      circuits: this.#condition.openCircuits(),
      brakedLanes: this.#condition.brakedLanes(),
      failedChores: this.#condition.failedChores(),
      pipelines: this.#pipelines.map(({ pipeline }) =>
        standingOfPipeline(pipeline, null, this.#backlog.counts.get(pipeline), this.#condition),
      ),
      unreachable,
      backlog,
      unrouted: this.#backlog.unrouted,
      remarks: [],
    });
    return JSON.parse(this.redact(JSON.stringify(health))) as Health;
  }

  async readiness(): Promise<Readiness> {
    const { answers, reason } = await this.#database.state();
    return readinessOf({ answers, reason: reason === null ? null : this.redact(reason) }, this.#pollFacts());
  }

  overview(): Promise<Overview> {
    return this.#overviews.overview();
  }

  series(): Promise<Series> {
    return this.#overviews.series();
  }

  async logs(): Promise<readonly ListedLog[]> {
    return [];
  }

  async findings(): Promise<readonly Finding[]> {
    return findingsOf(await this.health());
  }

  settings(): readonly EffectiveSetting[] {
    return effectiveSettings(this.#config.read);
  }

  async metrics(accept?: string): Promise<MetricsText> {
    return await this.#metrics.text(accept);
  }

  operations(): OperationTarget {
    throw new RelayError(
      "CONFIG_INVALID",
      "The intents are in DynamoDB, and the API supports only outboxes in a database",
    );
  }

  access(): AccessConfig {
    return NO_ACCESS_RULES;
  }

  stop(): void {
    this.#overviews.stop();
    this.#metrics.stop();
  }

  #pollFacts() {
    return {
      nowMs: Date.now(),
      uptimeS: Math.floor(process.uptime()),
      lastPollMs: this.#lastPollMs,
      pollIntervalMs: this.#config.timing.pollMs ?? 0,
    };
  }
}
