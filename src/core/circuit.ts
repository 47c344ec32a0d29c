import { backoffMs } from "./backoff.ts";

/** The first and the longest pause before a probe. */
export interface CircuitPolicy {
  readonly initialMs: number;
  readonly maxMs: number;
}

/** What may be sent now: everything, one probe, or nothing for `waitMs`. */
export type Admission = { readonly admits: "all" | "probe" } | { readonly admits: "none"; readonly waitMs: number };

/** Keys that one probe tries at most: enough to find the few that are still delivered among thousands. */
const PROBE_KEYS_MAX = 64;
/** After this many failed probes the destination counts as unreachable. */
const PROBES_TRIED = 2;
const SOON_MS = 5_000;
/**
 * Share of a requested wait that is added at random: the probe must not come much later than the destination asked for.
 */
const SPREAD_AFTER = 0.1;

/**
 * Keeps a destination or topic that takes nothing from costing attempts or CPU. The first failure opens the circuit.
 * After a delay that doubles with each failed probe it lets a probe through. Only the success of a probe closes it:
 * late answers to earlier sends must not make it flap. A destination that says when to retry (Retry-After) gets the
 * probe then, not sooner and hardly later.
 */
export class Circuit {
  readonly #policy: CircuitPolicy;
  #openUntilMs: number | null = null;
  /** Probes without an outcome. */
  #probing = 0;
  #failedProbes = 0;
  #reason = "";

  constructor(policy: CircuitPolicy) {
    this.#policy = policy;
  }

  get isOpen(): boolean {
    return this.#openUntilMs !== null;
  }

  /** True while it is open and either a few probes of different keys have failed or the next one is far off. */
  hasGivenUp(nowMs: number): boolean {
    if (this.#openUntilMs === null) return false;
    return this.#failedProbes >= PROBES_TRIED || this.#openUntilMs - nowMs > SOON_MS;
  }

  /** The failure that opened the circuit last; empty while it is closed. */
  get reason(): string {
    return this.#reason;
  }

  /**
   * How many keys a probe may try at once. The number doubles with each failed probe, so that a key that still works is
   * found soon, however many do not.
   */
  get probeKeys(): number {
    return Math.min(PROBE_KEYS_MAX, 2 ** this.#failedProbes);
  }

  /** What may be sent now. `probes` is how many may be on the wire at a time. */
  admission(nowMs: number, probes = 1): Admission {
    if (this.#openUntilMs === null) return { admits: "all" };
    if (this.#probing >= probes) return { admits: "none", waitMs: this.#policy.maxMs };
    const waitMs = this.#openUntilMs - nowMs;
    return waitMs > 0 ? { admits: "none", waitMs } : { admits: "probe" };
  }

  /** A probe is sent. It must end with `fail`, `succeed` or `cancelProbe`, or the circuit stays open. */
  beginProbe(): void {
    this.#probing += 1;
  }

  /** The probe ended without a result (it was aborted, or nothing was sent): another one may go. */
  cancelProbe(): void {
    this.#probing = Math.max(0, this.#probing - 1);
  }

  /** Returns true when this failure opened the circuit. `draw` in [0, 1) spreads the probes of many instances. */
  fail(
    nowMs: number,
    reason: string,
    options: { draw: number; afterMs?: number | undefined; probe: boolean },
  ): boolean {
    const wasOpen = this.isOpen;
    if (options.probe) this.cancelProbe();
    // Of several probes at once only the first failure counts. A late failure of an earlier send may only ask for more
    // time.
    if (wasOpen && (!options.probe || this.#openUntilMs! > nowMs)) {
      if (options.afterMs !== undefined) this.#openUntilMs = Math.max(this.#openUntilMs!, nowMs + options.afterMs);
      return false;
    }
    if (options.probe) this.#failedProbes += 1;
    this.#openUntilMs = nowMs + this.#pauseMs(options.draw, options.afterMs);
    this.#reason = reason;
    return !wasOpen;
  }

  /** Returns true when this success closed the circuit. */
  succeed(options: { probe: boolean }): boolean {
    if (!this.isOpen || !options.probe) return false;
    this.#openUntilMs = null;
    this.#probing = 0;
    this.#failedProbes = 0;
    this.#reason = "";
    return true;
  }

  #pauseMs(draw: number, afterMs: number | undefined): number {
    const { initialMs, maxMs } = this.#policy;
    if (afterMs !== undefined) return Math.max(initialMs, afterMs) * (1 + SPREAD_AFTER * draw);
    return backoffMs({ firstMs: initialMs, lastMs: maxMs }, this.#failedProbes) * (0.75 + 0.5 * draw);
  }
}
