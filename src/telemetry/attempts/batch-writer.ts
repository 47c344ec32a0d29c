import type { Clock } from "../../core/clock.ts";
import { reasonOf } from "../../core/errors.ts";

/** The store of a batch writer. */
export interface BatchStore<Item> {
  append(items: readonly Item[]): Promise<void>;
  close(): Promise<void>;
}

/** The store of a batch writer, and its bounds. */
export interface BatchWriterOptions<Item> {
  readonly store: BatchStore<Item>;
  readonly clock: Clock;
  /** Items per append; when this many wait, they are written at once. */
  readonly batchSize?: number;
  /** The longest time that an item waits for others; also the pause after a failed append. */
  readonly intervalMs?: number;
  /** Items kept while the store fails; beyond it the oldest are dropped. */
  readonly bufferMax?: number;
  /** How long `stop` waits for the store. */
  readonly stopMs?: number;
}

/** The counts of a batch writer. */
export interface BatchWriterState {
  readonly buffered: number;
  readonly stored: number;
  /** Lost, because the store failed for too long or the writer was stopped. */
  readonly dropped: number;
  /** Why the last append failed; null if it succeeded. */
  readonly error: string | null;
}

const DEFAULTS = { batchSize: 500, intervalMs: 1_000, bufferMax: 10_000, stopMs: 2_000 };

/**
 * Writes items to their store in batches, without delaying the delivery: `record` never waits and never throws, however
 * the store behaves. A failed append is retried, so a store can see some items twice.
 */
export class BatchWriter<Item> {
  readonly #options: Required<BatchWriterOptions<Item>>;
  #buffer: Item[] = [];
  #writing: Promise<void> | null = null;
  #pause: AbortController | null = null;
  #stopped: Promise<void> | null = null;
  #stored = 0;
  #dropped = 0;
  #error: string | null = null;

  constructor(options: BatchWriterOptions<Item>) {
    const { store, clock, batchSize, intervalMs, bufferMax, stopMs } = { ...DEFAULTS, ...options };
    this.#options = { store, clock, batchSize, intervalMs, bufferMax: Math.max(bufferMax, batchSize), stopMs };
  }

  /** A bound field, so that it can be passed as a listener. */
  readonly record = (item: Item): void => {
    if (this.#stopped !== null) {
      this.#dropped += 1;
      return;
    }
    this.#buffer.push(item);
    this.#trim();
    this.#writing ??= this.#write();
    if (this.#buffer.length >= this.#options.batchSize && this.#error === null) this.#pause?.abort();
  };

  get state(): BatchWriterState {
    return { buffered: this.#buffer.length, stored: this.#stored, dropped: this.#dropped, error: this.#error };
  }

  /** Makes one last write, and closes the store. Returns when that is done or the time is up. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const { store, clock, stopMs } = this.#options;
    const over = new AbortController();
    this.#pause?.abort();
    const writing = this.#writing ?? Promise.resolve();
    const closed = writing.then(() => store.close()).catch((error: unknown) => this.#failed(error));
    await Promise.race([closed, clock.sleep(stopMs, over.signal)]);
    over.abort();
    this.#dropped += this.#buffer.length;
    this.#buffer = [];
  }

  /** Runs only while items wait, so that an idle writer costs nothing. */
  async #write(): Promise<void> {
    const { batchSize, intervalMs } = this.#options;
    while (this.#buffer.length > 0) {
      if (this.#buffer.length < batchSize || this.#error !== null) await this.#sleep(intervalMs);
      const isLast = this.#stopped !== null;
      await this.#append(this.#buffer.splice(0, batchSize));
      if (isLast && this.#error !== null) break;
    }
    this.#writing = null;
  }

  async #sleep(ms: number): Promise<void> {
    if (this.#stopped !== null) return;
    this.#pause = new AbortController();
    await this.#options.clock.sleep(ms, this.#pause.signal);
    this.#pause = null;
  }

  async #append(batch: Item[]): Promise<void> {
    try {
      await this.#options.store.append(batch);
      this.#stored += batch.length;
      this.#error = null;
    } catch (error) {
      this.#failed(error);
      this.#buffer = [...batch, ...this.#buffer];
      this.#trim();
    }
  }

  #failed(error: unknown): void {
    this.#error = reasonOf(error);
  }

  /** Drops a batch at a time: moving the whole buffer for every item would slow the delivery. */
  #trim(): void {
    const { bufferMax, batchSize } = this.#options;
    if (this.#buffer.length <= bufferMax) return;
    const excess = Math.max(batchSize, this.#buffer.length - bufferMax);
    this.#buffer.splice(0, excess);
    this.#dropped += excess;
  }
}
