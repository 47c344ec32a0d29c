import type { ReaderTiming } from "./shard-reader.ts";

/** The runner's timing, all in milliseconds. */
export interface RunnerTiming extends ReaderTiming {
  /** Between two reads of the shard list and the checkpoints of other runners. */
  readonly refreshMs: number;
  /** An owner that sends no heartbeat for this time is dead. */
  readonly leaseMs: number;
  /** Between two sweeps. */
  readonly sweepMs: number;
  /** The limit of one handler call. */
  readonly invocationMs: number;
}

/** The defaults. */
export const RUNNER_TIMING: RunnerTiming = {
  pollMs: 250,
  windowMs: 20,
  pauseMs: { firstMs: 200, lastMs: 5_000 },
  refreshMs: 2_000,
  leaseMs: 10_000,
  sweepMs: 5_000,
  invocationMs: 30_000,
};
