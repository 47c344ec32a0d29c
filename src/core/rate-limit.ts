/** A burst may use the tokens of a pause of this length. */
const BURST_S = 0.1;

/** A token bucket: allows a number of events per second, and small bursts. */
export class RateLimit {
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #lastMs: number | null = null;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
    this.#burst = Math.max(1, perSecond * BURST_S);
    this.#tokens = this.#burst;
  }

  /** How many of the wanted events may be sent now. They count as sent. */
  take(wanted: number, nowMs: number): number {
    const elapsedMs = this.#lastMs === null ? 0 : Math.max(0, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
    this.#tokens = Math.min(this.#burst, this.#tokens + (elapsedMs * this.#perSecond) / 1_000);
    const granted = Math.min(wanted, Math.floor(this.#tokens));
    this.#tokens -= granted;
    return granted;
  }

  /** Returns tokens of events that were not sent after all. */
  giveBack(count: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + count);
  }

  /** The time until a quarter of a burst is available: waking up for every single event would cost too much. */
  waitMs(): number {
    const wanted = Math.max(1, this.#burst / 4);
    return Math.max(1, ((wanted - this.#tokens) * 1_000) / this.#perSecond);
  }
}
