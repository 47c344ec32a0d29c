import type { Clock } from "../core/clock.ts";
import type { Health } from "../http/health.ts";
import { destinationState, markersOf, type Overview, overviewOf, rounded, type Series } from "../http/overview.ts";
import type {
  DeliveredFigures,
  HoldFigures,
  NotedAction,
  RelayQuestions,
} from "../operations/overview/relay-figures.ts";
import type { Condition } from "../telemetry/condition.ts";
import type { PipelineEnds } from "../telemetry/metrics.ts";
import type { OverviewHistory } from "../telemetry/overview-history.ts";
import { POINT_EVERY_MS } from "../telemetry/point-ring.ts";
import { Remembered } from "../telemetry/remembered.ts";
import { type Waiting, waitingOf } from "../telemetry/waiting.ts";
import { type Engine, plainName } from "./engine.ts";

interface OverviewOptions {
  readonly clock: Clock;
  readonly history: OverviewHistory;
  /** Null where the events do not wait in a database that knows more. */
  readonly questions: RelayQuestions | null;
  /** The configured ones, by name. */
  readonly destinations: readonly string[];
  readonly condition: Condition;
  readonly engine: () => Pick<Engine, "backlog" | "pipelines"> | null;
  readonly health: () => Promise<Health>;
  readonly unreachable: () => Promise<readonly string[]>;
  readonly redact: (text: string) => string;
}

/** What the relay's schema told. */
interface Told {
  /** Null where there is none, or none that has ever answered. */
  readonly figures: DeliveredFigures | null;
  /** False while it gives no answer: then nothing is known of what waits either. */
  readonly isOfNow: boolean;
}

/** However many watch, nothing is asked more often than this. */
const CACHED_MS = 2_000;
const TOTALS_CACHED_MS = 1_500;
const HOLDS_CACHED_MS = 5_000;
/** How long an answer waits for figures before it shows the last known ones. */
const PATIENCE_MS = 1_000;
/** Whoever has asked so recently looks on. */
const WATCHED_MS = 30_000;
/** While nobody looks, every second point is left out, and what waits is counted once a minute. */
const IDLE_POINT_TICKS = 2;
const IDLE_COUNT_TICKS = 12;
/** A count that is older is none. */
const COUNT_AGE_MAX_MS = 75_000;

/** The overview of a service, and the points of its charts, which go on being taken while nobody looks. */
export class OverviewView {
  readonly #options: OverviewOptions;
  readonly #clock: Clock;
  readonly #delivered: Remembered<DeliveredFigures | null>;
  readonly #holds: Remembered<ReadonlyMap<string, HoldFigures> | null>;
  readonly #actions: Remembered<readonly NotedAction[] | null>;
  readonly #stopping = new AbortController();
  #askedMs = Number.NEGATIVE_INFINITY;
  #answer: { readonly atMs: number; readonly overview: Promise<Overview> } | null = null;
  #lastPoint: { readonly atMs: number; readonly delivered: number; readonly failed: number };

  constructor(options: OverviewOptions) {
    this.#options = options;
    this.#clock = options.clock;
    const { history, questions } = options;
    const nothing = async () => null;
    this.#delivered = new Remembered<DeliveredFigures | null>(
      this.#clock,
      TOTALS_CACHED_MS,
      questions?.delivered ?? nothing,
    );
    this.#holds = new Remembered<ReadonlyMap<string, HoldFigures> | null>(
      this.#clock,
      HOLDS_CACHED_MS,
      questions?.holds ?? nothing,
    );
    this.#actions = new Remembered<readonly NotedAction[] | null>(
      this.#clock,
      HOLDS_CACHED_MS,
      questions?.actions ?? nothing,
    );
    this.#lastPoint = {
      atMs: this.#clock.monotonicMs(),
      delivered: history.window.deliveredTotal,
      failed: history.window.failedTotal,
    };
  }

  /** Takes points until it is stopped. */
  async start(): Promise<void> {
    const { signal } = this.#stopping;
    for (let tick = 1; !signal.aborted; tick += 1) {
      await this.#clock.sleep(POINT_EVERY_MS, signal);
      // A point that cannot be taken is missing in a chart, and nothing more.
      if (!signal.aborted) await this.#tick(tick).catch(() => {});
    }
  }

  stop(): void {
    this.#stopping.abort();
  }

  overview(): Promise<Overview> {
    const nowMs = this.#clock.monotonicMs();
    this.#askedMs = nowMs;
    if (this.#answer === null || nowMs - this.#answer.atMs >= CACHED_MS) {
      this.#answer = { atMs: nowMs, overview: this.#overview() };
    }
    return this.#answer.overview;
  }

  async series(): Promise<Series> {
    this.#askedMs = this.#clock.monotonicMs();
    const { history, redact } = this.#options;
    const { known } = await this.#actions.answer(PATIENCE_MS);
    const markers = markersOf(history.markers.markers, known?.value ?? []);
    return {
      intervalMs: POINT_EVERY_MS,
      points: [...history.ring.points],
      markers: markers.map((marker) => ({ ...marker, what: redact(marker.what) })),
    };
  }

  async #overview(): Promise<Overview> {
    const { flow, ring } = this.#options.history;
    const [health, unreached, { known: holds }, told] = await Promise.all([
      this.#options.health(),
      this.#options.unreachable(),
      this.#holds.answer(PATIENCE_MS),
      this.#look(true),
    ]);
    const names = this.#names();
    const destinations = this.#destinationNames().map((name) => this.#destination(name, told, unreached));
    const held = [...(holds?.value?.values() ?? [])];
    return overviewOf({
      nowMs: this.#clock.wallMs(),
      health,
      waiting: this.#waiting(names, told),
      writtenPerSecond: told.isOfNow ? flow.writtenPerSecond(names) : null,
      publishedPerSecond:
        flow.publishedPerSecond(names, this.#clock.monotonicMs()) ?? sum(destinations, "publishedPerSecond"),
      failedPerSecond: sum(destinations, "failedPerSecond"),
      shrinkPerSecond: flow.shrinkPerSecond,
      retrying: sum(held, "retrying"),
      parkedKeys: sum(held, "parkedKeys"),
      deadLetters: this.#deadLetters(),
      publishedTotal: this.#publishedTotal(told),
      destinations,
      instances: told.isOfNow ? (told.figures?.instances ?? []) : [],
      lastPoint: ring.last,
    });
  }

  #destination(destination: string, told: Told, unreached: readonly string[]): Overview["destinations"][number] {
    const { condition, history, redact } = this.#options;
    const pipelines = this.#names(destination);
    const { deliveredPerSecond, failedPerSecond, lastError, p50Ms, p99Ms } = history.window.of(destination);
    const publishedPerSecond =
      history.flow.publishedPerSecond(pipelines, this.#clock.monotonicMs()) ?? deliveredPerSecond;
    const { oldestAgeMs, pending } = this.#waiting(pipelines, told);
    const isPaused = (name: string) => told.figures?.paused.has(name) === true || condition.isPaused(name);
    const circuits = condition.openCircuits().filter((it) => plainName(it.destination) === destination);
    return {
      destination,
      state: destinationState({
        isPaused: pipelines.length > 0 && pipelines.every(isPaused),
        isCircuitOpen: circuits.some(({ topic }) => topic === null),
        isUnreachable: unreached.includes(destination),
        isBusy: publishedPerSecond > 0 || failedPerSecond > 0 || (pending ?? 0) > 0,
      }),
      pipelines: [...pipelines],
      publishedPerSecond: rounded(publishedPerSecond),
      failedPerSecond: rounded(failedPerSecond),
      p50Ms: rounded(p50Ms),
      p99Ms: rounded(p99Ms),
      oldestAgeMs,
      pending,
      lastError: lastError === null ? null : { ...lastError, reason: redact(lastError.reason) },
    };
  }

  /** Asks what may be asked, and tells the meter. */
  async #look(mayCount: boolean): Promise<Told> {
    const { history, questions } = this.#options;
    const backlog = this.#options.engine()?.backlog;
    const [{ isLate, known, problem }] = await Promise.all([
      this.#delivered.answer(PATIENCE_MS),
      mayCount ? backlog?.figures(PATIENCE_MS) : undefined,
    ]);
    const nowMs = this.#clock.monotonicMs();
    const figures = known?.value ?? null;
    if (questions === null) history.flow.sample(nowMs, new Map(history.window.deliveredTotals));
    else if (known !== null && figures !== null) history.flow.sample(known.atMs, numbersOf(figures.totals));
    if (backlog !== undefined) history.flow.count(backlog.looks);
    return { figures, isOfNow: problem === null && !isLate };
  }

  async #tick(tick: number): Promise<void> {
    const { flow, ring, window } = this.#options.history;
    const isWatched = this.#clock.monotonicMs() - this.#askedMs < WATCHED_MS;
    if (!isWatched && tick % IDLE_POINT_TICKS !== 0) return;
    const told = await this.#look(isWatched || tick % IDLE_COUNT_TICKS === 0);
    const last = this.#lastPoint;
    const now = {
      atMs: this.#clock.monotonicMs(),
      delivered: window.deliveredTotal,
      failed: window.failedTotal,
    };
    this.#lastPoint = now;
    const seconds = (now.atMs - last.atMs) / 1_000;
    const names = this.#names();
    const published = told.isOfNow ? flow.publishedSince(names, last.atMs) : null;
    const { oldestAgeMs, pending } = this.#waiting(names, told);
    ring.add({
      at: new Date(this.#clock.wallMs()).toISOString(),
      written: told.isOfNow ? rounded(flow.writtenPerSecond(names)) : null,
      published: rounded(published ?? (now.delivered - last.delivered) / seconds),
      failed: rounded((now.failed - last.failed) / seconds),
      pending,
      oldestAgeMs,
      deadLetters: this.#deadLetters(),
    });
  }

  #waiting(pipelines: readonly string[], { isOfNow }: Told): Waiting {
    const looks = (isOfNow ? this.#options.engine()?.backlog.looks : null) ?? new Map();
    return waitingOf(looks, pipelines, this.#clock.monotonicMs() - COUNT_AGE_MAX_MS);
  }

  /** As they were last counted. */
  #deadLetters(): number {
    const looks = [...(this.#options.engine()?.backlog.looks.values() ?? [])];
    return looks.reduce((total, { found }) => total + (found?.dead ?? 0), 0);
  }

  #publishedTotal({ figures }: Told): bigint {
    if (figures === null) return BigInt(this.#options.history.window.deliveredTotal);
    return this.#names().reduce((total, name) => total + (figures.totals.get(name) ?? 0n), 0n);
  }

  /** The pipelines of this process, all or those of one destination. */
  #names(destination?: string): readonly string[] {
    return this.#pipelines
      .filter((ends) => destination === undefined || plainName(ends.destination) === destination)
      .map(({ pipeline }) => pipeline);
  }

  get #pipelines(): readonly PipelineEnds[] {
    return this.#options.engine()?.pipelines ?? [];
  }

  #destinationNames(): readonly string[] {
    const used = this.#pipelines.map(({ destination }) => plainName(destination));
    return [...new Set([...used, ...this.#options.destinations])];
  }
}

function sum<Name extends string>(some: readonly Readonly<Record<Name, number>>[], name: Name): number {
  return some.reduce((total, one) => total + one[name], 0);
}

function numbersOf(totals: ReadonlyMap<string, bigint>): ReadonlyMap<string, number> {
  return new Map([...totals].map(([pipeline, total]) => [pipeline, Number(total)]));
}
