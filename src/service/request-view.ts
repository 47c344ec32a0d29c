import type { ServiceConfig } from "../config/service-config.ts";
import { systemClock } from "../core/clock.ts";
import { DatabaseCheck, type DatabaseState } from "../http/health/database-check.ts";
import { type Health, plainNote, type Readiness, standingOf } from "../http/health/health.ts";
import type { Noted } from "../http/health/health-causes.ts";
import { bareOverview, findingsOf } from "../http/overview.ts";
import type { Finding } from "../operations/doctor/finding.ts";
import type { RequestGroup } from "../ports/request-queue.ts";
import type { RequestFailure, RequestListener, RequestState } from "../requests/request-listener.ts";
import { contextName } from "../requests/request-names.ts";
import { CachedQuery } from "../telemetry/cached-query.ts";
import { redactor } from "../telemetry/logs/redaction.ts";
import type { MetricsText } from "../telemetry/metrics/metrics-text.ts";
import type { OverviewHistory } from "../telemetry/metrics/overview-history.ts";
import { POINT_EVERY_MS } from "../telemetry/metrics/point-ring.ts";
import type { RequestMetrics } from "../telemetry/metrics/request-metrics.ts";
import type { RunningService } from "./running-service.ts";

const FINDINGS_CACHED_MS = 10_000;
const FINDINGS_TIMEOUT_MS = 10_000;

interface Parts {
  readonly history: OverviewHistory;
  readonly examine: () => Promise<readonly Finding[]>;
  readonly pingLog: () => Promise<void>;
  readonly pingQueue: () => Promise<void>;
}

interface Standing {
  readonly state: RequestState;
  readonly why: RequestFailure | null;
}

/** Health, readiness and metrics of a request service: its event store, its Redis and each context. */
export class RequestView implements RequestListener {
  readonly #config: ServiceConfig;
  readonly #metrics: RequestMetrics;
  readonly #history: OverviewHistory;
  readonly #examined: CachedQuery<readonly Finding[]>;
  readonly #log: DatabaseCheck;
  readonly #queue: DatabaseCheck;
  readonly #standings = new Map<string, Standing>();
  #lastReadMs: number | null = null;
  readonly #redact: (text: string) => string;

  constructor(config: ServiceConfig, metrics: RequestMetrics, { examine, history, pingLog, pingQueue }: Parts) {
    this.#config = config;
    this.#metrics = metrics;
    this.#history = history;
    this.#examined = new CachedQuery(systemClock, FINDINGS_CACHED_MS, examine);
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

  turned(group: RequestGroup, state: RequestState, why: RequestFailure | null): void {
    this.#standings.set(contextName(group), { state, why });
  }

  /** Falls back to what health knows while the servers cannot be examined. */
  async #findings(): Promise<readonly Finding[]> {
    const { isLate, known, problem } = await this.#examined.answer(FINDINGS_TIMEOUT_MS);
    return isLate || problem !== null || known === null ? findingsOf(await this.#health()) : known.value;
  }

  async #health(): Promise<Health> {
    const [log, queue] = await Promise.all([this.#log.state(), this.#queue.state()]);
    const isAllHalted =
      this.#standings.size > 0 && [...this.#standings.values()].every(({ state }) => state === "halted");
    const contexts = [...this.#standings].flatMap(([name, { state, why }]): Noted[] => {
      if (why === null) return [];
      const problem = { part: "relay", name, reason: `${why.reason}` } as const;
      const chapter = state === "halted" ? "requests-halted" : "requests-lag";
      return [plainNote(problem, { code: "requests-trouble", grade: isAllHalted ? "down" : "degraded", chapter })];
    });
    const health: Health = {
      ...standingOf([
        ...unreachedNote("source", "event store", log),
        ...unreachedNote("destination", "redis", queue),
        ...contexts,
      ]),
      service: this.#config.service,
      timestamp: new Date().toISOString(),
      uptime: Math.floor(process.uptime()),
      lastPollTime: this.#lastReadMs === null ? null : new Date(this.#lastReadMs).toISOString(),
      unpublishedEventCount: null,
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

function unreachedNote(part: "source" | "destination", name: string, { answers, reason }: DatabaseState): Noted[] {
  if (answers) return [];
  const problem = { part, name, reason: reason ?? "it does not answer" };
  const code = part === "source" ? "database-unreachable" : "destination-unreachable";
  return [plainNote(problem, { code, grade: "down", chapter: "requests-lag" })];
}
