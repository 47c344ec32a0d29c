import { type Clock, systemClock } from "./clock.ts";
import { Turns } from "./turns.ts";

/** Publishes at the same time; more of them wait. */
export const LINKS_MAX = 16;
/** A link that nobody used for so long is closed. */
export const IDLE_MS = 30_000;

/** What the pool has to know of a link. */
interface Link {
  /** It must not be used again. */
  readonly isSpent: boolean;
  destroy(): Promise<void> | void;
}

/** Links to a destination, each used by one publish at a time, so that giving one up harms no other. */
export class LinkPool<L extends Link> {
  readonly #create: () => L;
  readonly #clock: Clock;
  readonly #idle: { readonly link: L; readonly sinceMs: number }[] = [];
  readonly #turns = new Turns(LINKS_MAX);
  readonly #closed = new AbortController();
  #isSweeping = false;

  constructor(create: () => L, clock: Clock = systemClock) {
    this.#create = create;
    this.#clock = clock;
  }

  /** Null when the signal aborts before one is free. */
  async take(signal: AbortSignal): Promise<L | null> {
    if (!(await this.#turns.take(signal))) return null;
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (!idle.link.isSpent) return idle.link;
      void idle.link.destroy();
    }
    return this.#create();
  }

  giveBack(link: L): void {
    if (link.isSpent || this.#closed.signal.aborted) void link.destroy();
    else this.#idle.push({ link, sinceMs: this.#clock.monotonicMs() });
    this.#turns.giveBack();
    void this.#sweep();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.all(this.#idle.splice(0).map(({ link }) => link.destroy()));
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
