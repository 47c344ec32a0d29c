import { delivered, type Outcome, rejected, retry, skipped } from "../core/outcome.ts";
import type { ArrivalBook } from "./arrival-book.ts";
import { MAIN_DESTINATION, type WireMessage } from "./destination-wire.ts";

/** Faults of the main destination. */
export interface DestinationFaults {
  /** Rejects everything. */
  down: boolean;
  /** Each batch takes half a second longer. */
  slow: boolean;
  /** Every tenth message fails. */
  flaky: boolean;
  /** Accepts poison events, as after a deployed fix. */
  fixed: boolean;
}

const SLOW_MS = 500;
const FLAKY_EVERY = 10;
/** One subscriber always fails from time to time, so that retries are visible from the start. */
const UNRELIABLE = { destination: "search", every: 30 };

/**
 * The built-in destination of the demo. It stands in for a broker and for the subscribers of a log, counts arrivals and can
 * inject faults.
 */
export class DemoDestination {
  readonly faults: DestinationFaults = { down: false, slow: false, flaky: false, fixed: false };
  readonly #book: ArrivalBook;
  #taken = 0;
  #takenByUnreliable = 0;

  constructor(book: ArrivalBook) {
    this.#book = book;
  }

  /** Null if the sender gave up before anything arrived. */
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
    const { down, fixed } = this.faults;
    const isMain = destination === MAIN_DESTINATION;
    if (isMain && down) return retry("the demo destination is switched off", { scope: "destination" });
    const refusal = fixed ? null : refusalOf(payload);
    if (refusal !== null) return rejected(refusal);
    return isMain ? this.#deliverToMain() : this.#deliverToSubscriber(destination);
  }

  #deliverToMain(): Outcome {
    this.#taken += 1;
    const isOne = this.faults.flaky && this.#taken % FLAKY_EVERY === 0;
    return isOne ? retry("the demo destination failed this event at random") : delivered;
  }

  #deliverToSubscriber(destination: string): Outcome {
    if (destination !== UNRELIABLE.destination) return delivered;
    this.#takenByUnreliable += 1;
    return this.#takenByUnreliable % UNRELIABLE.every === 0
      ? retry("503: the search index is being merged")
      : delivered;
  }
}

/** The reasons for poison events, which destinations reject until they are fixed. */
const REFUSALS: Readonly<Record<string, string>> = {
  poison: "the receiver rejects an event without an amount",
  overdrawn: "the refund is more than was paid",
};

function refusalOf(payload: string): string | null {
  const name = Object.keys(REFUSALS).find((it) => payload.includes(`"${it}"`));
  return name === undefined ? null : (REFUSALS[name] ?? null);
}

function elapsed(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
