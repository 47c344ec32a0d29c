import type { TechnicalEvents } from "../../ports/technical-events.ts";

/** Checks within the time for which no instance must have taken a type. */
export const CHECKS_PER_PERIOD = 2;

/** A bound: a table full of invalid types must not cause a flood of reports. */
const TYPES_REPORTED_MAX = 100;

/**
 * Reports a type that no instance takes, once, and reports again when that is over. It does not report at the first
 * check: during a rolling deployment, for a moment no instance may take a type.
 */
export class MismatchReports {
  readonly #pipeline: string;
  readonly #events: TechnicalEvents;
  /** By type: the checks in a row in which no instance took it. */
  #checks = new Map<string, number>();
  readonly #reported = new Set<string>();

  constructor(pipeline: string, events: TechnicalEvents) {
    this.#pipeline = pipeline;
    this.#events = events;
  }

  /** Takes the result of one check. */
  update(unrouted: readonly { readonly type: string; readonly count: number }[]): void {
    const checks = new Map(unrouted.map(({ type }) => [type, (this.#checks.get(type) ?? 0) + 1]));
    this.#checks = checks;
    for (const type of this.#reported) {
      if (checks.has(type)) continue;
      this.#reported.delete(type);
      this.#events.emit("RelayMatched", { pipeline: this.#pipeline, intentType: type });
    }
    for (const { type: intentType, count } of unrouted) {
      const isDue = checks.get(intentType)! > CHECKS_PER_PERIOD;
      if (!isDue || this.#reported.has(intentType) || this.#reported.size >= TYPES_REPORTED_MAX) continue;
      this.#reported.add(intentType);
      this.#events.emit("RelayMismatch", { pipeline: this.#pipeline, intentType, count, recordId: null });
    }
  }
}
