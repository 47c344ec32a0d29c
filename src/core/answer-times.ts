import { ANSWER_BOUNDS_MS, AnswerRing, bucketOf, countIn, emptyBuckets, quantileMs } from "./answer-histogram.ts";
import type { Clock } from "./clock.ts";

/** A request without an answer yet. */
export interface OpenRequest {
  readonly startedMs: number;
}

export interface WindowFigures {
  /** Counted requests, including those without an answer yet. */
  readonly requests: number;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

/**
 * How long a destination takes to answer a request. The time that an event waited before the send is not part of it.
 */
export interface AnswerFigures {
  readonly lastMinute: WindowFigures;
  readonly lastFiveMinutes: WindowFigures;
  /** Null while the destination answers as fast as it usually does. `sinceMs` is wall time. */
  readonly slow: (Pick<Slowness, "presentMs" | "usualMs"> & { readonly sinceMs: number }) | null;
}

/** All answers since the process started, for a histogram. */
export interface AnswerTotals {
  readonly counts: readonly number[];
  readonly sumMs: number;
}

const MINUTE_MS = 60_000;
const SLICE_MS = 5_000;
const SLICES = 60;
const PAST_SLICES = 60;
/**
 * The shortest window with enough answers decides: a busy destination is found slow within seconds, a quiet one later.
 */
const RECENT_MS = [4 * SLICE_MS, MINUTE_MS, 5 * MINUTE_MS] as const;
/** A request that is open for longer was lost by its publisher and says nothing about the destination. */
const OPEN_MAX_MS = 5 * MINUTE_MS;
/** A pace that lasts this long is the usual one from then on. */
const USUAL_AFTER_MS = 24 * 60 * MINUTE_MS;

/**
 * The answer times of one destination. Adding an answer is three increments; figures are computed when they are read. A
 * slow destination is compared with its pace before it became slow: otherwise its slow answers would become the usual
 * pace, and the mark would end by itself.
 */
export class AnswerTimes {
  readonly #clock: Pick<Clock, "monotonicMs" | "wallMs">;
  readonly #recent = new AnswerRing(SLICE_MS, SLICES);
  readonly #past = new AnswerRing(MINUTE_MS, PAST_SLICES);
  readonly #counts = emptyBuckets();
  readonly #open = new Set<OpenRequest>();
  #sumMs = 0;
  #checkedSlice = -1;
  #slow: (Slowness & { readonly sinceMs: number; readonly sinceMonotonicMs: number }) | null = null;

  constructor(clock: Pick<Clock, "monotonicMs" | "wallMs">) {
    this.#clock = clock;
  }

  /** A request is sent. Pass the result to `end`. */
  begin(startedMs = this.#clock.monotonicMs()): OpenRequest {
    const request = { startedMs };
    this.#open.add(request);
    return request;
  }

  /**
   * The request is over. It does not count when it was not answered: the destination was unreachable, or it was
   * aborted.
   */
  end(request: OpenRequest, isAnswered: boolean): void {
    if (!this.#open.delete(request) || !isAnswered) return;
    const nowMs = this.#clock.monotonicMs();
    const tookMs = nowMs - request.startedMs;
    const bucket = bucketOf(tookMs);
    this.#counts[bucket]! += 1;
    this.#sumMs += tookMs;
    this.#recent.add(nowMs, bucket);
    const slice = Math.floor(nowMs / SLICE_MS);
    if (slice !== this.#checkedSlice) this.#checkPace(nowMs);
    if (this.#slow === null) this.#past.add(nowMs, bucket);
  }

  get totals(): AnswerTotals {
    return { counts: this.#counts, sumMs: this.#sumMs };
  }

  /** The figures of the last minutes, and whether the destination is slow. */
  figures(): AnswerFigures {
    const nowMs = this.#clock.monotonicMs();
    this.#checkPace(nowMs);
    const slow = this.#slow;
    return {
      lastMinute: windowFigures(this.#window(nowMs, MINUTE_MS)),
      lastFiveMinutes: windowFigures(this.#window(nowMs, 5 * MINUTE_MS)),
      slow: slow === null ? null : { presentMs: slow.presentMs, usualMs: slow.usualMs, sinceMs: slow.sinceMs },
    };
  }

  /** Counts open requests that have waited too long as well, because a slow destination gives few answers. */
  #window(nowMs: number, windowMs: number): number[] {
    const counts = this.#recent.since(nowMs, windowMs);
    for (const { startedMs } of this.#open) {
      const waitedMs = nowMs - startedMs;
      if (waitedMs >= SLOW_FLOOR_MS && waitedMs <= OPEN_MAX_MS) counts[bucketOf(waitedMs)]! += 1;
    }
    return counts;
  }

  #checkPace(nowMs: number): void {
    this.#checkedSlice = Math.floor(nowMs / SLICE_MS);
    const before = this.#slow;
    if (before !== null && nowMs - before.sinceMonotonicMs > USUAL_AFTER_MS) this.#slow = null;
    const usual = this.#slow ?? usualPace(this.#past.since(nowMs, PAST_SLICES * MINUTE_MS));
    const slowness = slownessOf(
      RECENT_MS.map((ms) => this.#window(nowMs, ms)),
      usual,
    );
    const since = this.#slow ?? { sinceMs: this.#clock.wallMs(), sinceMonotonicMs: nowMs };
    const { sinceMonotonicMs, sinceMs } = since;
    this.#slow = slowness === null ? null : { ...slowness, sinceMs, sinceMonotonicMs };
  }
}

function windowFigures(counts: readonly number[]): WindowFigures {
  const quantile = (share: number) => quantileMs(ANSWER_BOUNDS_MS, counts, share);
  return { requests: countIn(counts), p50Ms: quantile(0.5), p99Ms: quantile(0.99) };
}

/** A bound, because a configuration can rename its destinations at each reload. */
const DESTINATIONS_MAX = 200;

/** The answer times of all destinations of a process, by name. It outlives a relay, so that a reload loses nothing. */
export class AnswerBook {
  readonly #clock: Pick<Clock, "monotonicMs" | "wallMs">;
  readonly #times = new Map<string, AnswerTimes>();

  constructor(clock: Pick<Clock, "monotonicMs" | "wallMs">) {
    this.#clock = clock;
  }

  /** The answer times of this destination, new if there are none yet. */
  of(destination: string): AnswerTimes {
    const known = this.#times.get(destination);
    if (known !== undefined) return known;
    const times = new AnswerTimes(this.#clock);
    if (this.#times.size < DESTINATIONS_MAX) this.#times.set(destination, times);
    return times;
  }

  /** The figures of a destination; null when nothing has been sent to it. */
  figuresOf(destination: string): AnswerFigures | null {
    return this.#times.get(destination)?.figures() ?? null;
  }

  all(): ReadonlyMap<string, AnswerTimes> {
    return this.#times;
  }
}

/** A destination with a faster median is never slow, however fast it was before. */
const SLOW_FLOOR_MS = 250;
/** A destination is slow above this multiple of its usual time. */
const SLOW_FACTOR = 4;
/** Fewer answers prove nothing: a single slow request happens everywhere. */
const ANSWERS_MIN = 3;
/** The usual pace is known after this many answers. */
const USUAL_ANSWERS_MIN = 20;

/** How long a destination usually takes to answer. */
export interface UsualPace {
  /** The median of its past answers. */
  readonly usualMs: number;
  /** A median above this is slow. */
  readonly slowFromMs: number;
}

/** How much slower than usual a destination answers. */
export interface Slowness extends UsualPace {
  /** The median of its recent answers. */
  readonly presentMs: number;
}

/** The usual pace; null while there are too few answers to know it. */
function usualPace(past: readonly number[]): UsualPace | null {
  if (countIn(past) < USUAL_ANSWERS_MIN) return null;
  const usualMs = quantileMs(ANSWER_BOUNDS_MS, past, 0.5)!;
  return { usualMs, slowFromMs: Math.max(SLOW_FLOOR_MS, SLOW_FACTOR * usualMs) };
}

/**
 * Null when the destination is not slow, or too little is known. `windows` begin with the shortest; the first one with
 * enough answers decides.
 */
function slownessOf(windows: readonly (readonly number[])[], usual: UsualPace | null): Slowness | null {
  const counts = windows.find((window) => countIn(window) >= ANSWERS_MIN);
  if (usual === null || counts === undefined) return null;
  const presentMs = quantileMs(ANSWER_BOUNDS_MS, counts, 0.5)!;
  return presentMs > usual.slowFromMs ? { ...usual, presentMs } : null;
}
