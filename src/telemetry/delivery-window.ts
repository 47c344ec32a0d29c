import type { Clock } from "../core/clock.ts";
import { LATENCY_BOUNDS_MS } from "../core/latency.ts";
import type { Listenable } from "./listenable.ts";

interface DeliveryFigures {
  readonly deliveredPerSecond: number;
  readonly failedPerSecond: number;
  /** From the writing of an event to its acknowledgement; null where nothing was delivered lately. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly lastError: { readonly at: string; readonly reason: string } | null;
}

interface Slice {
  /** Monotonic time divided by the length of a slice. */
  readonly number: number;
  delivered: number;
  failed: number;
  readonly counts: number[];
}

interface Kept {
  /** The oldest first. */
  slices: Slice[];
  lastError: DeliveryFigures["lastError"];
}

const SLICE_MS = 5_000;
/** Latencies are those of the last five minutes, rates those of the last slices. */
const SLICES_MAX = 60;
const RATE_SLICES = 3;
/** A setting can rename destinations as often as it likes. */
const DESTINATIONS_MAX = 200;
const REASON_CHARS_MAX = 500;

/** What this process has delivered and failed lately, by destination. Told by technical events alone. */
export class DeliveryWindow {
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();
  readonly #deliveredOf = new Map<string, number>();
  #failed = 0;
  readonly #beganMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#beganMs = clock.monotonicMs();
  }

  listen(events: Listenable, destinationOf: (pipeline: string) => string | undefined): void {
    events.on("BatchSettled", ({ delivered, latency, pipeline }) => {
      if (delivered === 0) return;
      this.#deliveredOf.set(pipeline, (this.#deliveredOf.get(pipeline) ?? 0) + delivered);
      const slice = this.#slice(destinationOf(pipeline));
      if (slice === null) return;
      slice.delivered += delivered;
      for (const [at, count] of (latency?.counts ?? []).entries()) slice.counts[at]! += count;
    });
    events.on("IntentRelayFailed", ({ pipeline, reason }) => {
      this.#failed += 1;
      const destination = destinationOf(pipeline);
      const slice = this.#slice(destination);
      if (slice === null) return;
      slice.failed += 1;
      this.#erred(destination!, reason);
    });
    events.on("CircuitOpened", ({ destination, reason }) => {
      if (this.#slice(destination) !== null) this.#erred(destination, reason);
    });
  }

  /** Since the process has started. */
  get failedTotal(): number {
    return this.#failed;
  }

  get deliveredTotal(): number {
    return [...this.#deliveredOf.values()].reduce((total, count) => total + count, 0);
  }

  /** By pipeline, of this process since it has started. */
  get deliveredTotals(): ReadonlyMap<string, number> {
    return this.#deliveredOf;
  }

  of(destination: string): DeliveryFigures {
    const kept = this.#kept.get(destination);
    const now = this.#now();
    const slices = (kept?.slices ?? []).filter(({ number }) => number > now - SLICES_MAX);
    const lately = slices.filter(({ number }) => number > now - RATE_SLICES);
    const seconds = this.#rateSeconds(now);
    const counts = slices.reduce(added, emptyCounts());
    return {
      deliveredPerSecond: lately.reduce((sum, { delivered }) => sum + delivered, 0) / seconds,
      failedPerSecond: lately.reduce((sum, { failed }) => sum + failed, 0) / seconds,
      p50Ms: quantileMs(counts, 0.5),
      p99Ms: quantileMs(counts, 0.99),
      lastError: kept?.lastError ?? null,
    };
  }

  /** The time that the slices of a rate cover: the last of them has just begun, and so may have the process. */
  #rateSeconds(now: number): number {
    const nowMs = this.#clock.monotonicMs();
    const fromMs = Math.max(this.#beganMs, (now - RATE_SLICES + 1) * SLICE_MS);
    return Math.max(1_000, nowMs - fromMs) / 1_000;
  }

  #erred(destination: string, reason: string): void {
    const at = new Date(this.#clock.wallMs()).toISOString();
    this.#kept.get(destination)!.lastError = { at, reason: reason.slice(0, REASON_CHARS_MAX) };
  }

  #slice(destination: string | undefined): Slice | null {
    if (destination === undefined) return null;
    let kept = this.#kept.get(destination);
    if (kept === undefined) {
      if (this.#kept.size >= DESTINATIONS_MAX) return null;
      kept = { slices: [], lastError: null };
      this.#kept.set(destination, kept);
    }
    const now = this.#now();
    const last = kept.slices.at(-1);
    if (last?.number === now) return last;
    const slice = { number: now, delivered: 0, failed: 0, counts: emptyCounts() };
    kept.slices = [...kept.slices.filter(({ number }) => number > now - SLICES_MAX), slice];
    return slice;
  }

  #now(): number {
    return Math.floor(this.#clock.monotonicMs() / SLICE_MS);
  }
}

function emptyCounts(): number[] {
  return new Array<number>(LATENCY_BOUNDS_MS.length + 1).fill(0);
}

function added(sum: number[], { counts }: Slice): number[] {
  return sum.map((count, at) => count + (counts[at] ?? 0));
}

/** Evenly spread between the bounds; beyond the last of them, that bound. */
function quantileMs(counts: readonly number[], share: number): number | null {
  const wanted = counts.reduce((sum, count) => sum + count, 0) * share;
  if (wanted === 0) return null;
  let below = 0;
  for (const [at, count] of counts.entries()) {
    if (below + count < wanted) {
      below += count;
      continue;
    }
    const from = LATENCY_BOUNDS_MS[at - 1] ?? 0;
    const to = LATENCY_BOUNDS_MS[at] ?? from;
    return from + ((to - from) * (wanted - below)) / count;
  }
  return null;
}
