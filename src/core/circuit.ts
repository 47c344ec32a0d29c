export interface CircuitPolicy {
  readonly initialMs: number;
  readonly maxMs: number;
}

/** What may be sent now: everything, one probe, or nothing for `waitMs`. */
export type Admission = { readonly admits: "all" | "probe" } | { readonly admits: "none"; readonly waitMs: number };

/** Keys that are tried at a time, at most: enough to find the few that still get through among thousands. */
const PROBE_KEYS_MAX = 64;
/** After so many failed probes nobody waits for the next. */
const PROBES_TRIED = 2;
const SOON_MS = 5_000;
/** Nobody is asked much later than he wanted to be. */
const SPREAD_AFTER = 0.1;

/**
 * Keeps a destination or topic that cannot take anything from costing attempts or CPU. The first failure opens it;
 * after a delay that doubles with each failed probe a probe is let through; only a probe's success closes it, so
 * that answers to what was sent earlier cannot make it flap. Who says when to come again is asked then, neither sooner
 * nor much later.
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

  /** Open, and neither a few probes by different keys got through nor will one go soon. */
  hasGivenUp(nowMs: number): boolean {
    if (this.#openUntilMs === null) return false;
    return this.#failedProbes >= PROBES_TRIED || this.#openUntilMs - nowMs > SOON_MS;
  }

  get reason(): string {
    return this.#reason;
  }

  /**
   * How many keys may be tried at once: more with each probe that failed, so that one that gets through is found soon
   * however many do not.
   */
  get probeKeys(): number {
    return Math.min(PROBE_KEYS_MAX, 2 ** this.#failedProbes);
  }

  /** `probes` may be under way at a time. */
  admission(nowMs: number, probes = 1): Admission {
    if (this.#openUntilMs === null) return { admits: "all" };
    if (this.#probing >= probes) return { admits: "none", waitMs: this.#policy.maxMs };
    const waitMs = this.#openUntilMs - nowMs;
    return waitMs > 0 ? { admits: "none", waitMs } : { admits: "probe" };
  }

  beginProbe(): void {
    this.#probing += 1;
  }

  /** The probe came back without telling anything (abandoned, nothing sent): another one may go. */
  cancelProbe(): void {
    this.#probing = Math.max(0, this.#probing - 1);
  }

  /** True when this failure opened the circuit; `draw` in [0, 1) spreads the probes of many instances. */
  fail(
    nowMs: number,
    reason: string,
    options: { draw: number; afterMs?: number | undefined; probe: boolean },
  ): boolean {
    const wasOpen = this.isOpen;
    if (options.probe) this.cancelProbe();
    // Of several probes at once the first failure tells, and what was sent before it opened only when to come again.
    if (wasOpen && (!options.probe || this.#openUntilMs! > nowMs)) {
      if (options.afterMs !== undefined) this.#openUntilMs = Math.max(this.#openUntilMs!, nowMs + options.afterMs);
      return false;
    }
    if (options.probe) this.#failedProbes += 1;
    this.#openUntilMs = nowMs + this.#pauseMs(options.draw, options.afterMs);
    this.#reason = reason;
    return !wasOpen;
  }

  /** True when this success closed the circuit. */
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
    return Math.min(maxMs, initialMs * 2 ** this.#failedProbes) * (0.75 + 0.5 * draw);
  }
}
