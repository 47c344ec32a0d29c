import type { Clock } from "../../core/clock.ts";

/**
 * A client that sends ever new names must not fill the memory: beyond this, the least recently used entry is dropped.
 */
const KEPT_MAX = 10_000;

/** Keeps the most recently set entries. */
class Kept<Value> {
  readonly #values = new Map<string, Value>();

  get(key: string): Value | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: Value): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size <= KEPT_MAX) return;
    const { value: oldest } = this.#values.keys().next();
    if (oldest !== undefined) this.#values.delete(oldest);
  }
}

/** Rate limit per client: a token bucket that holds two seconds' worth of requests. */
export class RequestLimit {
  readonly #clock: Clock;
  readonly #buckets = new Kept<{ readonly left: number; readonly atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Seconds to wait; 0 when the request is allowed. */
  waitS(key: string, perSecond: number): number {
    const atMs = this.#clock.monotonicMs();
    const { atMs: lastMs, left } = this.#buckets.get(key) ?? { left: perSecond * 2, atMs };
    const filled = Math.min(perSecond * 2, left + ((atMs - lastMs) / 1_000) * perSecond);
    if (filled < 1) return Math.max(1, Math.ceil((1 - filled) / perSecond));
    this.#buckets.set(key, { left: filled - 1, atMs });
    return 0;
  }
}

/** More than a few browsers with a live screen each. */
const IN_FLIGHT_MAX = 50;

/** Limits the open requests of one client. Streams matter most: each of them holds resources until it ends. */
export class InFlightLimit {
  readonly #counts = new Map<string, number>();

  /** Returns the function to call at the end of the request; null when too many are open. */
  enter(key: string): (() => void) | null {
    const count = this.#counts.get(key) ?? 0;
    if (count >= IN_FLIGHT_MAX) return null;
    this.#counts.set(key, count + 1);
    return () => {
      const left = (this.#counts.get(key) ?? 1) - 1;
      if (left > 0) this.#counts.set(key, left);
      else this.#counts.delete(key);
    };
  }
}

const FAILURES_MAX = 10;
const WINDOW_MS = 60_000;

/** Wrong tokens per address: after ten in a minute, further tokens are refused unchecked until the minute ends. */
export class FailureLimit {
  readonly #clock: Clock;
  readonly #failures = new Kept<{ readonly count: number; readonly untilMs: number }>();
  /**
   * Names whose token was right from this address before: others behind the same proxy must not be able to lock them
   * out.
   */
  readonly #proven = new Kept<true>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  waitS(address: string): number {
    const { count, untilMs } = this.#of(address);
    return count < FAILURES_MAX ? 0 : Math.max(1, Math.ceil((untilMs - this.#clock.monotonicMs()) / 1_000));
  }

  failed(address: string): void {
    const { count, untilMs } = this.#of(address);
    this.#failures.set(address, { count: count + 1, untilMs });
  }

  succeeded(address: string, name: string): void {
    this.#proven.set(`${name}@${address}`, true);
  }

  isProven(address: string, name: string): boolean {
    return this.#proven.get(`${name}@${address}`) === true;
  }

  #of(address: string): { readonly count: number; readonly untilMs: number } {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#failures.get(address);
    return known !== undefined && known.untilMs > nowMs ? known : { count: 0, untilMs: nowMs + WINDOW_MS };
  }
}

/** The client that limits apply to: an address, or for IPv6 its /64 network, which one household or machine owns. */
export function askerOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "");
  if (!plain.includes(":")) return plain;
  const [head = "", tail = ""] = plain.split("%")[0]!.split("::", 2);
  const left = head === "" ? [] : head.split(":");
  const right = tail === "" ? [] : tail.split(":");
  const groups = [...left, ...Array<string>(Math.max(0, 8 - left.length - right.length)).fill("0"), ...right];
  return `${groups.slice(0, 4).join(":")}::/64`;
}
