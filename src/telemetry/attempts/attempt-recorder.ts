import type { Clock } from "../../core/clock.ts";
import type { AttemptRecorder, RecordedAttempt } from "../../ports/attempt-recorder.ts";
import { BatchWriter, type BatchWriterState } from "./batch-writer.ts";

/** Stores the attempts that the console and the CLI show. */
export interface AttemptStore {
  append(attempts: readonly RecordedAttempt[]): Promise<void>;
  /**
   * Deletes up to `rows` attempts that are older than this. Returns their number: fewer than `rows` when none are left.
   */
  prune(olderThanMs: number, rows: number): Promise<number>;
  close(): Promise<void>;
}

interface AttemptRecorderOptions {
  readonly store: AttemptStore;
  readonly clock: Clock;
  /** Delivered events recorded per second. Failed attempts are always recorded. */
  readonly deliveredPerSecond: number;
  readonly retentionMs: number;
  /** How long `stop` waits for the store. */
  readonly stopMs?: number;
}

const SECOND_MS = 1_000;
const PRUNE_ROWS = 1_000;
/** Enough to keep up with the largest recording rate, few enough to leave the database time for the delivery. */
const PRUNE_STEPS = 500;
const PRUNE_EVERY_MS = { least: SECOND_MS, most: 60_000 };

/**
 * Records every failed attempt, and the first delivered ones of each second: all of them in a quiet system, a sample
 * during a drain. Attempts that the store does not accept in time are dropped and counted.
 */
export class BudgetedRecorder implements AttemptRecorder {
  readonly #options: AttemptRecorderOptions;
  readonly #writer: BatchWriter<RecordedAttempt>;
  readonly #stopping = new AbortController();
  readonly #pruning: Promise<void>;
  #budget: number;
  #renewsAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: AttemptRecorderOptions) {
    this.#options = options;
    const { clock, store, stopMs } = options;
    this.#budget = options.deliveredPerSecond;
    this.#writer = new BatchWriter({ store, clock, ...(stopMs === undefined ? {} : { stopMs }) });
    this.#pruning = this.#pruneLoop();
  }

  takesDelivered(nowMs: number): boolean {
    if (nowMs >= this.#renewsAtMs) {
      this.#renewsAtMs = nowMs + SECOND_MS;
      this.#budget = this.#options.deliveredPerSecond;
    }
    if (this.#budget <= 0) return false;
    this.#budget -= 1;
    return true;
  }

  record(attempt: RecordedAttempt): void {
    this.#writer.record(attempt);
  }

  get state(): BatchWriterState {
    return this.#writer.state;
  }

  /** Makes one last write, and closes the store. Returns when that is done or the time is up. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#writer.stop();
    await this.#pruning;
  }

  /** Ignores failures: the next round prunes the same rows. */
  async #pruneLoop(): Promise<void> {
    const { clock, retentionMs } = this.#options;
    const { signal } = this.#stopping;
    const everyMs = Math.min(PRUNE_EVERY_MS.most, Math.max(PRUNE_EVERY_MS.least, retentionMs / 10));
    for (;;) {
      await clock.sleep(everyMs, signal);
      if (signal.aborted) return;
      await this.#prune().catch(() => {});
    }
  }

  async #prune(): Promise<void> {
    const { retentionMs, store } = this.#options;
    for (let step = 0; step < PRUNE_STEPS && !this.#stopping.signal.aborted; step += 1) {
      if ((await store.prune(retentionMs, PRUNE_ROWS)) < PRUNE_ROWS) return;
    }
  }
}
