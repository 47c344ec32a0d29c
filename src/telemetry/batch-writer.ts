import type { Clock } from "../core/clock.ts";
import { reasonOf } from "../core/errors.ts";

/** Where a batch is written to. */
interface BatchStore<Item> {
  append(items: readonly Item[]): Promise<void>;
  close(): Promise<void>;
}

export interface BatchWriterOptions<Item> {
  readonly store: BatchStore<Item>;
  readonly clock: Clock;
  /** Items in one append; as soon as so many wait they are written. */
  readonly batchSize?: number;
  /** The longest wait of an item for others; also the pause after an append that failed. */
  readonly intervalMs?: number;
  /** While the store takes nothing, so many are kept; then the oldest go. */
  readonly bufferMax?: number;
  /** How long a stop waits for the store. */
  readonly stopMs?: number;
}

export interface BatchWriterState {
  readonly buffered: number;
  readonly stored: number;
  /** Lost, because the store took nothing for too long or the writer was stopped. */
  readonly dropped: number;
  /** Why the last append failed; null after one that did not. */
  readonly error: string | null;
}

const DEFAULTS = { batchSize: 500, intervalMs: 1_000, bufferMax: 10_000, stopMs: 2_000 };

/**
 * Writes items to their store in batches, behind the delivery's back: `record` never waits and never throws, however
 * the store behaves. An append that failed is tried again, so a store may see some items twice.
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

  /** The listener. A field, so that it can be handed over as it is. */
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

  /** Writes what waits, once, and closes the store. Returns when that is done or its time is over. */
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

  /** Runs while anything waits, so that an idle writer costs nothing. */
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

  /** Drops a batch at a time, because moving the whole buffer for every item would cost the delivery. */
  #trim(): void {
    const { bufferMax, batchSize } = this.#options;
    if (this.#buffer.length <= bufferMax) return;
    const excess = Math.max(batchSize, this.#buffer.length - bufferMax);
    this.#buffer.splice(0, excess);
    this.#dropped += excess;
  }
}
