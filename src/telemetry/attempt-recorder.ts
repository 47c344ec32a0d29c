import type { Clock } from "../core/clock.ts";
import type { AttemptRecorder, RecordedAttempt } from "../ports/attempt-recorder.ts";
import { BatchWriter, type BatchWriterState } from "./batch-writer.ts";

/** Where attempts are kept. */
export interface AttemptStore {
  append(attempts: readonly RecordedAttempt[]): Promise<void>;
  /** Deletes some that are older than this; how many, which is less than `rows` at the end. */
  prune(olderThanMs: number, rows: number): Promise<number>;
  close(): Promise<void>;
}

interface AttemptRecorderOptions {
  readonly store: AttemptStore;
  readonly clock: Clock;
  /** Delivered events that are recorded in a second. Failed ones always are. */
  readonly deliveredPerSecond: number;
  readonly retentionMs: number;
  /** How long a stop waits for the store. */
  readonly stopMs?: number;
}

const SECOND_MS = 1_000;
const PRUNE_ROWS = 1_000;
/** Enough to keep up with everything that can be recorded, few enough to leave the database its breath. */
const PRUNE_STEPS = 500;
const PRUNE_EVERY_MS = { least: SECOND_MS, most: 60_000 };

/**
 * Records every failed attempt, and of the delivered ones the first of each second: a quiet system has all of them, a
 * drain some. What the store does not take in time is lost, and counted.
 */
export class BudgetedRecorder implements AttemptRecorder {
  readonly #options: AttemptRecorderOptions;
  readonly #writer: BatchWriter<RecordedAttempt>;
  readonly #stopping = new AbortController();
  readonly #pruning: Promise<void>;
  #left: number;
  #renewsAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: AttemptRecorderOptions) {
    this.#options = options;
    const { clock, store, stopMs } = options;
    this.#left = options.deliveredPerSecond;
    this.#writer = new BatchWriter({ store, clock, ...(stopMs === undefined ? {} : { stopMs }) });
    this.#pruning = this.#pruneForEver();
  }

  takesDelivered(nowMs: number): boolean {
    if (nowMs >= this.#renewsAtMs) {
      this.#renewsAtMs = nowMs + SECOND_MS;
      this.#left = this.#options.deliveredPerSecond;
    }
    if (this.#left <= 0) return false;
    this.#left -= 1;
    return true;
  }

  record(attempt: RecordedAttempt): void {
    this.#writer.record(attempt);
  }

  get state(): BatchWriterState {
    return this.#writer.state;
  }

  /** Writes what waits, once, and closes the store. Returns when that is done or its time is over. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#writer.stop();
    await this.#pruning;
  }

  /** A store that cannot be pruned now is pruned the next time. */
  async #pruneForEver(): Promise<void> {
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
