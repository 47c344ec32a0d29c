import type { Clock } from "../core/clock.ts";
import type { Health } from "../http/health/health.ts";
import {
  answersOf,
  destinationState,
  markersOf,
  type Overview,
  overviewOf,
  rounded,
  type Series,
} from "../http/overview.ts";
import type {
  DeliveredFigures,
  HoldFigures,
  NotedAction,
  RelayQuestions,
} from "../operations/overview/relay-figures.ts";
import { CachedQuery } from "../telemetry/cached-query.ts";
import type { Condition } from "../telemetry/condition.ts";
import type { PipelineEnds } from "../telemetry/metrics/metrics.ts";
import type { OverviewHistory } from "../telemetry/metrics/overview-history.ts";
import { POINT_EVERY_MS } from "../telemetry/metrics/point-ring.ts";
import type { KnownStanding } from "../telemetry/pipeline-standing.ts";
import { unroutedIn, type Waiting, waitingOf } from "../telemetry/waiting.ts";
import { type Engine, plainName } from "./engine.ts";

interface OverviewOptions {
  readonly clock: Clock;
  readonly history: OverviewHistory;
  /** Null for stores that record nothing across instances. */
  readonly questions: RelayQuestions | null;
  /** The configured destination names. */
  readonly destinations: readonly string[];
  readonly condition: Condition;
  readonly engine: () => Pick<Engine, "backlog" | "pipelines"> | null;
  readonly health: () => Promise<Health>;
  readonly unreachable: () => Promise<readonly string[]>;
  readonly redact: (text: string) => string;
}

/** What the relay's schema answered. */
interface SchemaAnswer {
  /** Null where there is no such schema, or where it has never answered. */
  readonly figures: DeliveredFigures | null;
  /** False while the schema does not answer: then the backlog is unknown too. */
  readonly isCurrent: boolean;
}

/** The least time between two reads, however many clients ask. */
const CACHED_MS = 2_000;
const TOTALS_CACHED_MS = 1_500;
const HOLDS_CACHED_MS = 5_000;
/** How long an answer waits for figures before it shows the last known ones. */
const FIGURES_TIMEOUT_MS = 1_000;
/** The overview counts as watched for this long after a request. */
const WATCHED_MS = 30_000;
/** While no client asks, every second point is left out, and the backlog is counted once a minute. */
const IDLE_POINT_TICKS = 2;
const IDLE_COUNT_TICKS = 12;
/** An older count is not shown. */
const COUNT_AGE_MAX_MS = 75_000;

/** The overview of a service and the points of its charts. Takes points even while no client asks. */
export class OverviewView {
  readonly #options: OverviewOptions;
  readonly #clock: Clock;
  readonly #delivered: CachedQuery<DeliveredFigures | null>;
  readonly #holds: CachedQuery<ReadonlyMap<string, HoldFigures> | null>;
  readonly #actions: CachedQuery<readonly NotedAction[] | null>;
  readonly #stopping = new AbortController();
  #askedMs = Number.NEGATIVE_INFINITY;
  #answer: { readonly atMs: number; readonly overview: Promise<Overview> } | null = null;
  #lastPoint: { readonly atMs: number; readonly delivered: number; readonly failed: number };

  constructor(options: OverviewOptions) {
    this.#options = options;
    this.#clock = options.clock;
    const { history, questions } = options;
    const nothing = async () => null;
    this.#delivered = new CachedQuery<DeliveredFigures | null>(
      this.#clock,
      TOTALS_CACHED_MS,
      questions?.delivered ?? nothing,
    );
    this.#holds = new CachedQuery<ReadonlyMap<string, HoldFigures> | null>(
      this.#clock,
      HOLDS_CACHED_MS,
      questions?.holds ?? nothing,
    );
    this.#actions = new CachedQuery<readonly NotedAction[] | null>(
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

  /** Takes points until stopped. */
  async start(): Promise<void> {
    const { signal } = this.#stopping;
    for (let tick = 1; !signal.aborted; tick += 1) {
      await this.#clock.sleep(POINT_EVERY_MS, signal);
      // A failed point leaves a gap in a chart, nothing more.
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

  /**
   * What the relay's schema knows of each pipeline; empty where there is no such schema, or where it has never
   * answered.
   */
  async standings(): Promise<ReadonlyMap<string, KnownStanding>> {
    const [{ known: answer }, { known: held }] = await Promise.all([
      this.#delivered.answer(FIGURES_TIMEOUT_MS),
      this.#holds.answer(FIGURES_TIMEOUT_MS),
    ]);
    const [figures, holds] = [answer?.value ?? null, held?.value ?? null];
    if (figures === null || holds === null) return new Map();
    return new Map(
      this.#names().map((name) => {
        const { deadKeys = 0, deadSince = null, parkedSince = null, retrying = 0 } = holds.get(name) ?? {};
        const pause = figures.paused.get(name) ?? null;
        return [name, { deadSince, parkedKeys: deadKeys, parkedSince, retrying, pause }];
      }),
    );
  }

  async series(): Promise<Series> {
    this.#askedMs = this.#clock.monotonicMs();
    const { history, redact } = this.#options;
    const { known } = await this.#actions.answer(FIGURES_TIMEOUT_MS);
    const markers = markersOf(history.markers.markers, known?.value ?? []);
    return {
      intervalMs: POINT_EVERY_MS,
      points: [...history.ring.points],
      markers: markers.map((marker) => ({ ...marker, what: redact(marker.what) })),
    };
  }

  async #overview(): Promise<Overview> {
    const { flow, ring } = this.#options.history;
    const [health, unreached, { known: holds }, answer] = await Promise.all([
      this.#options.health(),
      this.#options.unreachable(),
      this.#holds.answer(FIGURES_TIMEOUT_MS),
      this.#readFigures(true),
    ]);
    const names = this.#names();
    const destinations = this.#destinationNames().map((name) => this.#destination(name, answer, unreached));
    const held = names.flatMap((name) => holds?.value?.get(name) ?? []);
    return overviewOf({
      nowMs: this.#clock.wallMs(),
      health,
      waiting: this.#waiting(names, answer),
      writtenPerSecond: answer.isCurrent ? flow.writtenPerSecond(names) : null,
      publishedPerSecond:
        flow.publishedPerSecond(names, this.#clock.monotonicMs()) ?? sum(destinations, "publishedPerSecond"),
      failedPerSecond: sum(destinations, "failedPerSecond"),
      shrinkPerSecond: flow.shrinkPerSecond,
      retrying: sum(held, "retrying"),
      parkedKeys: sum(held, "parkedKeys"),
      deadLetters: this.#deadLetters(names),
      unrouted: unroutedIn(this.#options.engine()?.backlog.unrouted ?? []),
      publishedTotal: this.#publishedTotal(answer),
      destinations,
      instances: answer.isCurrent ? (answer.figures?.instances ?? []) : [],
      lastPoint: ring.last,
    });
  }

  #destination(
    destination: string,
    answer: SchemaAnswer,
    unreached: readonly string[],
  ): Overview["destinations"][number] {
    const { condition, history, redact } = this.#options;
    const pipelines = this.#names(destination);
    const { deliveredPerSecond, failedPerSecond, lastError, p50Ms, p99Ms } = history.window.of(destination);
    const publishedPerSecond =
      history.flow.publishedPerSecond(pipelines, this.#clock.monotonicMs()) ?? deliveredPerSecond;
    const waiting = this.#waiting(pipelines, answer);
    const isPaused = (name: string) => answer.figures?.paused.has(name) === true || condition.isPaused(name);
    const circuits = condition.openCircuits().filter((it) => plainName(it.destination) === destination);
    return {
      destination,
      state: destinationState({
        isPaused: pipelines.length > 0 && pipelines.every(isPaused),
        isCircuitOpen: circuits.some(({ topic }) => topic === null),
        isUnreachable: unreached.includes(destination),
        isBusy: publishedPerSecond > 0 || failedPerSecond > 0 || (waiting.pending ?? 0) > 0,
      }),
      pipelines: [...pipelines],
      publishedPerSecond: rounded(publishedPerSecond),
      failedPerSecond: rounded(failedPerSecond),
      p50Ms: rounded(p50Ms),
      p99Ms: rounded(p99Ms),
      answers: answersOf(history.answers.figuresOf(destination)),
      ...waiting,
      deadLetters: this.#deadLetters(pipelines),
      circuits: circuits.map(({ reason, topic }) => ({ topic, reason: redact(reason) })),
      lastError: lastError === null ? null : { ...lastError, reason: redact(lastError.reason) },
    };
  }

  /** Reads the figures, and passes them to the flow meter. */
  async #readFigures(mayCount: boolean): Promise<SchemaAnswer> {
    const { history, questions } = this.#options;
    const backlog = this.#options.engine()?.backlog;
    const [{ isLate, known, problem }] = await Promise.all([
      this.#delivered.answer(FIGURES_TIMEOUT_MS),
      mayCount ? backlog?.figures(FIGURES_TIMEOUT_MS) : undefined,
    ]);
    const nowMs = this.#clock.monotonicMs();
    const figures = known?.value ?? null;
    if (questions === null) history.flow.sample(nowMs, new Map(history.window.deliveredTotals));
    else if (known !== null && figures !== null) history.flow.sample(known.atMs, numbersOf(figures.totals));
    if (backlog !== undefined) history.flow.count(backlog.counts);
    return { figures, isCurrent: problem === null && !isLate };
  }

  async #tick(tick: number): Promise<void> {
    const { flow, ring, window } = this.#options.history;
    const isWatched = this.#clock.monotonicMs() - this.#askedMs < WATCHED_MS;
    if (!isWatched && tick % IDLE_POINT_TICKS !== 0) return;
    const answer = await this.#readFigures(isWatched || tick % IDLE_COUNT_TICKS === 0);
    const last = this.#lastPoint;
    const now = {
      atMs: this.#clock.monotonicMs(),
      delivered: window.deliveredTotal,
      failed: window.failedTotal,
    };
    this.#lastPoint = now;
    const seconds = (now.atMs - last.atMs) / 1_000;
    const names = this.#names();
    const published = answer.isCurrent ? flow.publishedSince(names, last.atMs) : null;
    const { oldestAgeMs, pending } = this.#waiting(names, answer);
    ring.add({
      at: new Date(this.#clock.wallMs()).toISOString(),
      written: answer.isCurrent ? rounded(flow.writtenPerSecond(names)) : null,
      published: rounded(published ?? (now.delivered - last.delivered) / seconds),
      failed: rounded((now.failed - last.failed) / seconds),
      pending,
      oldestAgeMs,
      deadLetters: this.#deadLetters(names),
    });
  }

  #waiting(pipelines: readonly string[], { isCurrent }: SchemaAnswer): Waiting {
    const counts = (isCurrent ? this.#options.engine()?.backlog.counts : null) ?? new Map();
    return waitingOf(counts, pipelines, this.#clock.monotonicMs() - COUNT_AGE_MAX_MS);
  }

  /** Open dead letters by the last count. */
  #deadLetters(pipelines: readonly string[]): number {
    const counts = this.#options.engine()?.backlog.counts;
    return pipelines.reduce((total, pipeline) => total + (counts?.get(pipeline)?.found?.dead ?? 0), 0);
  }

  #publishedTotal({ figures }: SchemaAnswer): bigint {
    if (figures === null) return BigInt(this.#options.history.window.deliveredTotal);
    return this.#names().reduce((total, name) => total + (figures.totals.get(name) ?? 0n), 0n);
  }

  /** This process's pipelines: all, or those of one destination. */
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
