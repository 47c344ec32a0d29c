import { backoffMs } from "../core/backoff.ts";

/** Why a job returns to the queue without an outcome. It uses no attempt and is delivered again. */
export class Requeue extends Error {
  /** Null: the usual backoff. */
  readonly afterMs: number | null;

  constructor(reason: string, afterMs: number | null = null, options?: ErrorOptions) {
    super(reason, options);
    this.name = "Requeue";
    this.afterMs = afterMs;
  }
}

const PAUSE_MS = { firstMs: 500, lastMs: 15_000 };

/** The delay before the n-th retry of something that is retried until it succeeds. */
export const retryDelayMs = (tries: number) => backoffMs(PAUSE_MS, tries);
