import type { Settlement } from "../ports/queue-store.ts";

interface BatchEnd {
  readonly batch: bigint;
  readonly count: number;
  readonly ledger: "batch" | "heal";
}

/**
 * Delivered events that wait for their settle. Without a ledger, any number of them makes a batch. With a ledger, the
 * batches are given and only whole batches may be settled: the next owner takes the number of a batch as proof that all
 * of its events are settled.
 */
export class DeliveredBuffer {
  #ids: string[] = [];
  #ends: BatchEnd[] = [];
  #ended = 0;

  /** A batch without events to mark still counts: its settle raises the lane's batch number. */
  get isEmpty(): boolean {
    return this.#ids.length === 0 && this.#ends.length === 0;
  }

  add(ids: readonly string[]): void {
    for (const id of ids) this.#ids.push(id);
  }

  /** The events added since the last call are the batch with this number. */
  endBatch(batch: bigint, ledger: "batch" | "heal"): void {
    this.#ends.push({ batch, count: this.#ids.length - this.#ended, ledger });
    this.#ended = this.#ids.length;
  }

  /** Takes about `max` events; a single batch may have more. `settled` is the number of the last settled batch. */
  take(max: number, settled: bigint): Pick<Settlement, "batch" | "delivered" | "ledger"> {
    if (this.#ends.length > 0) return this.#takeBatches(max);
    const delivered = this.#ids.splice(0, max);
    return { batch: settled + (delivered.length > 0 ? 1n : 0n), delivered, ledger: "none" };
  }

  clear(): void {
    this.#ids = [];
    this.#ends = [];
    this.#ended = 0;
  }

  #takeBatches(max: number): Pick<Settlement, "batch" | "delivered" | "ledger"> {
    let { batch, count, ledger } = this.#ends.shift()!;
    while (this.#ends.length > 0 && this.#ends[0]!.ledger === ledger && count + this.#ends[0]!.count <= max) {
      const next = this.#ends.shift()!;
      batch = next.batch;
      count += next.count;
      ledger = next.ledger;
    }
    this.#ended -= count;
    return { batch, delivered: this.#ids.splice(0, count), ledger };
  }
}
