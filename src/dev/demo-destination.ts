import { delivered, type Outcome, rejected, retry, skipped } from "../core/outcome.ts";
import type { ArrivalBook } from "./arrival-book.ts";
import type { WireMessage } from "./destination-wire.ts";

/** What can be wrong with the destination. */
export interface DestinationFaults {
  /** Refuses everything. */
  down: boolean;
  /** Takes half a second longer for each batch. */
  slow: boolean;
  /** Every tenth message fails. */
  flaky: boolean;
  /** Takes poison too, as after a fix. */
  mended: boolean;
}

const SLOW_MS = 500;
const FLAKY_EVERY = 10;

/** Stands for a broker until one is configured: what arrives here can be watched, and everything can go wrong. */
export class DemoDestination {
  readonly faults: DestinationFaults = { down: false, slow: false, flaky: false, mended: false };
  readonly #book: ArrivalBook;
  #taken = 0;

  constructor(book: ArrivalBook) {
    this.#book = book;
  }

  /** Null when the sender gave up before anything arrived. */
  async take(messages: readonly WireMessage[], givenUp: AbortSignal): Promise<readonly Outcome[] | null> {
    if (this.faults.slow) await elapsed(SLOW_MS);
    if (givenUp.aborted) return null;
    const failedKeys = new Set<string>();
    return messages.map((message) => {
      const { key } = message;
      if (key !== null && failedKeys.has(key)) return skipped;
      const outcome = this.#judge(message);
      if (outcome.kind === "delivered") this.#book.arrived(message);
      else if (key !== null) failedKeys.add(key);
      return outcome;
    });
  }

  #judge({ payload }: WireMessage): Outcome {
    const { down, flaky, mended } = this.faults;
    if (down) return retry("the demo destination is switched off", { scope: "destination" });
    if (isPoison(payload) && !mended) return rejected("the demo destination refuses an invoice without an amount");
    this.#taken += 1;
    if (flaky && this.#taken % FLAKY_EVERY === 0) return retry("the demo destination stumbled over this one");
    return delivered;
  }
}

const isPoison = (payload: string): boolean => payload.includes('"poison"');

function elapsed(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
