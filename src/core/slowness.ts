import { ANSWER_BOUNDS_MS, countIn, quantileMs } from "./answer-histogram.ts";

/** A destination with a faster median is never slow, however fast it was before. */
export const SLOW_FLOOR_MS = 250;
/** A destination is slow above this multiple of its usual time. */
const SLOW_FACTOR = 4;
/** Fewer answers prove nothing: a single slow request happens everywhere. */
const ANSWERS_MIN = 3;
/** The usual pace is known after this many answers. */
const USUAL_ANSWERS_MIN = 20;

/** How long a destination usually takes to answer. */
interface UsualPace {
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
export function usualPace(past: readonly number[]): UsualPace | null {
  if (countIn(past) < USUAL_ANSWERS_MIN) return null;
  const usualMs = quantileMs(ANSWER_BOUNDS_MS, past, 0.5)!;
  return { usualMs, slowFromMs: Math.max(SLOW_FLOOR_MS, SLOW_FACTOR * usualMs) };
}

/**
 * Null when the destination is not slow, or too little is known. `windows` begin with the shortest; the first one with
 * enough answers decides.
 */
export function slownessOf(windows: readonly (readonly number[])[], usual: UsualPace | null): Slowness | null {
  const counts = windows.find((window) => countIn(window) >= ANSWERS_MIN);
  if (usual === null || counts === undefined) return null;
  const presentMs = quantileMs(ANSWER_BOUNDS_MS, counts, 0.5)!;
  return presentMs > usual.slowFromMs ? { ...usual, presentMs } : null;
}
