export interface CircuitPolicy {
  readonly initialMs: number;
  readonly maxMs: number;
}

/** What may be sent now: everything, one probe, or nothing for `waitMs`. */
export type Admission = { readonly admits: "all" | "probe" } | { readonly admits: "none"; readonly waitMs: number };

/**
 * Keeps a destination or topic that cannot take anything from costing attempts or CPU. The first failure opens it;
 * after a delay that doubles with each failed probe one probe is let through; only a probe's success closes it, so
 * that answers to what was sent earlier cannot make it flap.
 */
export class Circuit {
  readonly #policy: CircuitPolicy;
  #openUntilMs: number | null = null;
  #probing = false;
  #failedProbes = 0;
  #reason = "";

  constructor(policy: CircuitPolicy) {
    this.#policy = policy;
  }

  get isOpen(): boolean {
    return this.#openUntilMs !== null;
  }

  get reason(): string {
    return this.#reason;
  }

  admission(nowMs: number): Admission {
    if (this.#openUntilMs === null) return { admits: "all" };
    if (this.#probing) return { admits: "none", waitMs: this.#policy.maxMs };
    const waitMs = this.#openUntilMs - nowMs;
    return waitMs > 0 ? { admits: "none", waitMs } : { admits: "probe" };
  }

  beginProbe(): void {
    this.#probing = true;
  }

  /** The probe came back without telling anything (abandoned, nothing sent): another one may go. */
  cancelProbe(): void {
    this.#probing = false;
  }

  /** True when this failure opened the circuit; `draw` in [0, 1) spreads the probes of many instances. */
  fail(nowMs: number, reason: string, options: { draw: number; afterMs?: number; probe: boolean }): boolean {
    const wasOpen = this.isOpen;
    if (wasOpen && !options.probe) return false;
    if (options.probe) {
      this.#probing = false;
      this.#failedProbes += 1;
    }
    const backoffMs = Math.min(this.#policy.maxMs, this.#policy.initialMs * 2 ** this.#failedProbes);
    this.#openUntilMs = nowMs + Math.max(options.afterMs ?? 0, backoffMs * (0.75 + 0.5 * options.draw));
    this.#reason = reason;
    return !wasOpen;
  }

  /** True when this success closed the circuit. */
  succeed(options: { probe: boolean }): boolean {
    if (!this.isOpen || !options.probe) return false;
    this.#openUntilMs = null;
    this.#probing = false;
    this.#failedProbes = 0;
    this.#reason = "";
    return true;
  }
}
