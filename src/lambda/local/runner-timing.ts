import type { ReaderTiming } from "./shard-reader.ts";

/** Everything in milliseconds. */
export interface RunnerTiming extends ReaderTiming {
  /** Between two looks at the list of shards and at what other runners do. */
  readonly lookMs: number;
  /** An owner that gives no sign of life for so long is dead. */
  readonly leaseMs: number;
  /** Between two looks for what is due. */
  readonly sweepMs: number;
  /** What one call of a handler may take. */
  readonly invocationMs: number;
}

export const RUNNER_TIMING: RunnerTiming = {
  pollMs: 250,
  windowMs: 20,
  pauseMs: { first: 200, last: 5_000 },
  lookMs: 2_000,
  leaseMs: 10_000,
  sweepMs: 5_000,
  invocationMs: 30_000,
};
