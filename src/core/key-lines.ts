import type { Message } from "./event.ts";
import { type Outcome, skipped } from "./outcome.ts";

/**
 * The messages of a batch in one line (queue) per key: the next message of a line may be sent once the one before it
 * was delivered. For destinations that can refuse a message and take the next one, which would change their order.
 */
export class KeyLines {
  /** Indexes of the messages that may be sent now, in order. The sender removes them. */
  readonly ready: number[] = [];
  readonly #batch: readonly Message[];
  readonly #report: (index: number, outcome: Outcome) => void;
  /** The later messages of each key, the next one last. */
  readonly #later = new Map<string, number[]>();

  constructor(batch: readonly Message[], report: (index: number, outcome: Outcome) => void) {
    this.#batch = batch;
    this.#report = report;
    for (const [index, { event }] of batch.entries()) {
      const later = event.key === null ? undefined : this.#later.get(event.key);
      if (later !== undefined) later.push(index);
      else this.ready.push(index);
      if (event.key !== null && later === undefined) this.#later.set(event.key, []);
    }
    for (const later of this.#later.values()) later.reverse();
  }

  /**
   * Reports the outcome of a message. The next message of its line becomes ready; the rest of the line is skipped when
   * this one failed or `mayContinue` is false.
   */
  settle(index: number, outcome: Outcome, mayContinue = true): void {
    this.#report(index, outcome);
    const { key } = this.#batch[index]!.event;
    const later = key === null ? undefined : this.#later.get(key);
    if (later === undefined) return;
    if (outcome.kind !== "delivered" || !mayContinue) {
      for (const waiting of later.splice(0).reverse()) this.#report(waiting, skipped);
    }
    const next = later.pop();
    if (next !== undefined) this.ready.push(next);
  }
}
