import { delivered, type Outcome, rejected, retry, skipped } from "../core/outcome.ts";
import type { ArrivalBook } from "./arrival-book.ts";
import { MAIN_DESTINATION, type WireMessage } from "./destination-wire.ts";

/** What can be wrong with the main destination. */
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
/** One destination is never quite well, so that retries can be seen from the start. */
const WEAK = { destination: "search", every: 30 };

/**
 * Stands for a broker and for what reads a log until one is configured: what arrives here can be watched, and
 * everything can go wrong.
 */
export class DemoDestination {
  readonly faults: DestinationFaults = { down: false, slow: false, flaky: false, mended: false };
  readonly #book: ArrivalBook;
  #taken = 0;
  #takenByTheWeak = 0;

  constructor(book: ArrivalBook) {
    this.#book = book;
  }

  /** Null when the sender gave up before anything arrived. */
  async take(messages: readonly WireMessage[], givenUp: AbortSignal): Promise<readonly Outcome[] | null> {
    if (this.faults.slow && messages[0]?.destination === MAIN_DESTINATION) await elapsed(SLOW_MS);
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

  #judge({ destination, payload }: WireMessage): Outcome {
    const { down, mended } = this.faults;
    const isMain = destination === MAIN_DESTINATION;
    if (isMain && down) return retry("the demo destination is switched off", { scope: "destination" });
    const refusal = mended ? null : refusalOf(payload);
    if (refusal !== null) return rejected(refusal);
    return isMain ? this.#stumble() : this.#waver(destination);
  }

  #stumble(): Outcome {
    this.#taken += 1;
    const isOne = this.faults.flaky && this.#taken % FLAKY_EVERY === 0;
    return isOne ? retry("the demo destination stumbled over this one") : delivered;
  }

  #waver(destination: string): Outcome {
    if (destination !== WEAK.destination) return delivered;
    this.#takenByTheWeak += 1;
    return this.#takenByTheWeak % WEAK.every === 0 ? retry("503: the search index is being merged") : delivered;
  }
}

/** Of events that no destination takes before it is mended. */
const REFUSALS: Readonly<Record<string, string>> = {
  poison: "the receiver refuses an event without an amount",
  overdrawn: "the refund is more than was paid",
};

function refusalOf(payload: string): string | null {
  const name = Object.keys(REFUSALS).find((it) => payload.includes(`"${it}"`));
  return name === undefined ? null : (REFUSALS[name] ?? null);
}

function elapsed(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
