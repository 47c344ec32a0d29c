import { quantileMs } from "../../core/answer-histogram.ts";
import type { Clock } from "../../core/clock.ts";
import { LATENCY_BOUNDS_MS } from "../../core/latency.ts";
import type { Listenable } from "../listenable.ts";

interface DeliveryFigures {
  readonly deliveredPerSecond: number;
  readonly failedPerSecond: number;
  /** From the writing of an event to its acknowledgement; null without recent deliveries. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly lastError: { readonly at: string; readonly reason: string } | null;
}

interface Slice {
  /** Monotonic time divided by SLICE_MS. */
  readonly number: number;
  delivered: number;
  failed: number;
  readonly counts: number[];
}

interface Kept {
  /** Oldest first. */
  slices: Slice[];
  lastError: DeliveryFigures["lastError"];
}

const SLICE_MS = 5_000;
/** Latencies cover the last five minutes, rates the last slices. */
const SLICES_MAX = 60;
const RATE_SLICES = 3;
/** A bound, because reloads can rename destinations any number of times. */
const DESTINATIONS_MAX = 200;
const REASON_CHARS_MAX = 500;

/** This process's recent deliveries and failures by destination, from technical events. */
export class DeliveryWindow {
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();
  readonly #deliveredOf = new Map<string, number>();
  #failed = 0;
  readonly #startedMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
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
      this.#noteError(destination!, reason);
    });
    events.on("CircuitOpened", ({ destination, reason }) => {
      if (this.#slice(destination) !== null) this.#noteError(destination, reason);
    });
  }

  /** Failures since the process started. */
  get failedTotal(): number {
    return this.#failed;
  }

  /** Deliveries since the process started. */
  get deliveredTotal(): number {
    return [...this.#deliveredOf.values()].reduce((total, count) => total + count, 0);
  }

  /** Deliveries since the process started, by pipeline. */
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
      p50Ms: quantileMs(LATENCY_BOUNDS_MS, counts, 0.5),
      p99Ms: quantileMs(LATENCY_BOUNDS_MS, counts, 0.99),
      lastError: kept?.lastError ?? null,
    };
  }

  /** The time that the rate's slices cover: the last slice is not complete, and the process can be younger. */
  #rateSeconds(now: number): number {
    const nowMs = this.#clock.monotonicMs();
    const fromMs = Math.max(this.#startedMs, (now - RATE_SLICES + 1) * SLICE_MS);
    return Math.max(1_000, nowMs - fromMs) / 1_000;
  }

  #noteError(destination: string, reason: string): void {
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
