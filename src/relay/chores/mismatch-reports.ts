import type { TechnicalEvents } from "../../ports/technical-events.ts";

/** Looks within the time for which a type must have had no taker. */
export const LOOKS_PER_PERIOD = 2;

/** A table of nonsense must not become a flood of reports. */
const TYPES_TOLD_MAX = 100;

/**
 * Tells a type that nobody takes once, and once more when that is over. Not at the first look: while relays are
 * replaced one by one, a type may be without a taker for a moment.
 */
export class MismatchReports {
  readonly #pipeline: string;
  readonly #events: TechnicalEvents;
  /** By type: in how many looks in a row nobody took it. */
  #looks = new Map<string, number>();
  readonly #told = new Set<string>();

  constructor(pipeline: string, events: TechnicalEvents) {
    this.#pipeline = pipeline;
    this.#events = events;
  }

  /** What a look has found. */
  seen(unrouted: readonly { readonly type: string; readonly count: number }[]): void {
    const looks = new Map(unrouted.map(({ type }) => [type, (this.#looks.get(type) ?? 0) + 1]));
    this.#looks = looks;
    for (const type of this.#told) {
      if (looks.has(type)) continue;
      this.#told.delete(type);
      this.#events.emit("RelayMatched", { pipeline: this.#pipeline, intentType: type });
    }
    for (const { type: intentType, count } of unrouted) {
      const isDue = looks.get(intentType)! > LOOKS_PER_PERIOD;
      if (!isDue || this.#told.has(intentType) || this.#told.size >= TYPES_TOLD_MAX) continue;
      this.#told.add(intentType);
      this.#events.emit("RelayMismatch", { pipeline: this.#pipeline, intentType, count, recordId: null });
    }
  }
}
