import { type Clock, systemClock } from "../../core/clock.ts";

/** Publishes at the same time; more of them wait. Each link has a connection to every broker that it writes to. */
export const LINKS_MAX = 16;
/** A link that nobody used for so long is closed. */
export const IDLE_MS = 30_000;

/** What the pool has to know of a link. */
interface Link {
  /** It must not be used again. */
  readonly isSpent: boolean;
  destroy(): Promise<void>;
}

/** Links, each used by one publish at a time, so that giving one up harms no other. */
export class KafkaLinkPool<L extends Link> {
  readonly #create: () => L;
  readonly #clock: Clock;
  readonly #idle: { readonly link: L; readonly sinceMs: number }[] = [];
  readonly #waiting: (() => void)[] = [];
  readonly #closed = new AbortController();
  #used = 0;
  #isSweeping = false;

  constructor(create: () => L, clock: Clock = systemClock) {
    this.#create = create;
    this.#clock = clock;
  }

  /** Null when the signal aborts before one is free. */
  async take(signal: AbortSignal): Promise<L | null> {
    while (this.#used >= LINKS_MAX && !signal.aborted) await this.#next(signal);
    if (signal.aborted) return null;
    this.#used += 1;
    return this.#idle.pop()?.link ?? this.#create();
  }

  giveBack(link: L): void {
    this.#used -= 1;
    if (link.isSpent || this.#closed.signal.aborted) void link.destroy();
    else this.#idle.push({ link, sinceMs: this.#clock.monotonicMs() });
    this.#waiting.shift()?.();
    void this.#sweep();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.all(this.#idle.splice(0).map(({ link }) => link.destroy()));
  }

  /** Resolves when a link was given back, or the signal aborts. */
  #next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        signal.removeEventListener("abort", done);
        const at = this.#waiting.indexOf(done);
        if (at >= 0) this.#waiting.splice(at, 1);
        resolve();
      };
      signal.addEventListener("abort", done, { once: true });
      this.#waiting.push(done);
    });
  }

  /** Closes what was idle for long, as long as anything is idle. */
  async #sweep(): Promise<void> {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    while (this.#idle.length > 0 && !this.#closed.signal.aborted) {
      await this.#clock.sleep(IDLE_MS, this.#closed.signal);
      const untilMs = this.#clock.monotonicMs() - IDLE_MS;
      // The last one given back is used first, so the ones in front are the oldest.
      while ((this.#idle[0]?.sinceMs ?? Number.POSITIVE_INFINITY) <= untilMs) void this.#idle.shift()?.link.destroy();
    }
    this.#isSweeping = false;
  }
}
