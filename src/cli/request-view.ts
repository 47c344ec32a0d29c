import type { ServiceConfig } from "../config/service-config.ts";
import { systemClock } from "../core/clock.ts";
import { DatabaseCheck } from "../http/database-check.ts";
import type { Health, Readiness } from "../http/health.ts";
import { bareOverview, findingsOf } from "../http/overview.ts";
import type { Finding } from "../operations/doctor/finding.ts";
import type { RequestGroup } from "../ports/request-queue.ts";
import type { RequestListener, RequestState, RequestTrouble } from "../requests/request-listener.ts";
import { contextName } from "../requests/request-names.ts";
import type { MetricsText } from "../telemetry/metrics-text.ts";
import type { OverviewHistory } from "../telemetry/overview-history.ts";
import { POINT_EVERY_MS } from "../telemetry/point-ring.ts";
import { redactor } from "../telemetry/redaction.ts";
import { Remembered } from "../telemetry/remembered.ts";
import type { RequestMetrics } from "../telemetry/request-metrics.ts";
import type { RunningService } from "./running-service.ts";

const FINDINGS_CACHED_MS = 10_000;
const FINDINGS_PATIENCE_MS = 10_000;

type Problem = NonNullable<Health["problems"]>[number];

interface Parts {
  readonly history: OverviewHistory;
  readonly examine: () => Promise<readonly Finding[]>;
  readonly pingLog: () => Promise<void>;
  readonly pingQueue: () => Promise<void>;
}

interface Standing {
  readonly state: RequestState;
  readonly why: RequestTrouble | null;
}

/** How a service of requests is: its event store, its Redis and each context. */
export class RequestView implements RequestListener {
  readonly #config: ServiceConfig;
  readonly #metrics: RequestMetrics;
  readonly #history: OverviewHistory;
  readonly #examined: Remembered<readonly Finding[]>;
  readonly #log: DatabaseCheck;
  readonly #queue: DatabaseCheck;
  readonly #standings = new Map<string, Standing>();
  #lastReadMs: number | null = null;
  readonly #redact: (text: string) => string;

  constructor(config: ServiceConfig, metrics: RequestMetrics, { examine, history, pingLog, pingQueue }: Parts) {
    this.#config = config;
    this.#metrics = metrics;
    this.#history = history;
    this.#examined = new Remembered(systemClock, FINDINGS_CACHED_MS, examine);
    this.#redact = redactor(config.secrets);
    this.#log = new DatabaseCheck(systemClock, pingLog);
    this.#queue = new DatabaseCheck(systemClock, pingQueue);
  }

  /** What the HTTP server shows. */
  get faces(): RunningService["view"] {
    return {
      health: () => this.#health(),
      readiness: () => this.#readiness(),
      logs: async () => [],
      findings: async () => await this.#findings(),
      overview: async () => bareOverview(await this.#health()),
      series: async () => ({ intervalMs: POINT_EVERY_MS, points: [], markers: [...this.#history.markers.markers] }),
      metrics: (accept?: string): Promise<MetricsText> => this.#metrics.text(accept),
      redact: this.#redact,
    };
  }

  dispatched(): void {
    this.#queue.answered();
  }

  skipped(): void {}

  died(): void {}

  lag(): void {
    this.#lastReadMs = Date.now();
    this.#log.answered();
  }

  turned(group: RequestGroup, state: RequestState, why: RequestTrouble | null): void {
    this.#standings.set(contextName(group), { state, why });
  }

  /** What is known without looking, where the servers cannot be looked at. */
  async #findings(): Promise<readonly Finding[]> {
    const { isLate, known, problem } = await this.#examined.answer(FINDINGS_PATIENCE_MS);
    return isLate || problem !== null || known === null ? findingsOf(await this.#health()) : known.value;
  }

  async #health(): Promise<Health> {
    const [log, queue] = await Promise.all([this.#log.state(), this.#queue.state()]);
    const fatal: Problem[] = [];
    if (!log.answers) fatal.push({ part: "source", name: "event store", reason: log.reason ?? "it does not answer" });
    if (!queue.answers)
      fatal.push({ part: "destination", name: "redis", reason: queue.reason ?? "it does not answer" });
    const contexts = [...this.#standings].flatMap(([name, { why }]): Problem[] =>
      why === null ? [] : [{ part: "relay", name, reason: `${why.reason}` }],
    );
    const isAllHalted =
      this.#standings.size > 0 && [...this.#standings.values()].every(({ state }) => state === "halted");
    const problems = [...fatal, ...contexts];
    const health: Health = {
      status: fatal.length > 0 || isAllHalted ? "unhealthy" : problems.length > 0 ? "degraded" : "healthy",
      service: this.#config.service,
      timestamp: new Date().toISOString(),
      uptime: Math.floor(process.uptime()),
      lastPollTime: this.#lastReadMs === null ? null : new Date(this.#lastReadMs).toISOString(),
      unpublishedEventCount: null,
      ...(problems.length > 0 ? { problems } : {}),
    };
    return JSON.parse(this.#redact(JSON.stringify(health))) as Health;
  }

  async #readiness(): Promise<Readiness> {
    const { answers, reason } = await this.#log.state();
    const halted = [...this.#standings].filter(([, { state }]) => state === "halted").map(([name]) => name);
    const loops = halted.length === 0 ? "ok" : `halted: ${halted.join(", ")}`;
    const database = answers ? "ok" : this.#redact(reason ?? "it does not answer");
    return { isReady: answers && halted.length === 0, checks: { database, loops } };
  }
}
