import type { RedisLink } from "./redis-client.ts";

/** Publishes at the same time; more of them wait. */
const LINKS_MAX = 16;

/** Connections, each used by one publish at a time, so that giving one up harms no other. */
export class RedisLinkPool {
  readonly #create: () => RedisLink;
  readonly #waiting: (() => void)[] = [];
  #idle: RedisLink[] = [];
  #used = 0;
  #isClosed = false;

  constructor(create: () => RedisLink) {
    this.#create = create;
  }

  /** Null when the signal aborts before one is free. */
  async take(signal: AbortSignal): Promise<RedisLink | null> {
    while (this.#used >= LINKS_MAX && !signal.aborted) await this.#next(signal);
    if (signal.aborted) return null;
    this.#used += 1;
    this.#idle = this.#idle.filter((link) => !link.isSpent);
    return this.#idle.pop() ?? this.#create();
  }

  giveBack(link: RedisLink): void {
    this.#used -= 1;
    if (link.isSpent) {
      // What broke one has likely broken the others, and each would cost a publish to find out.
      for (const other of this.#idle.splice(0)) other.destroy();
    } else if (this.#isClosed) link.destroy();
    else this.#idle.push(link);
    this.#waiting.shift()?.();
  }

  close(): void {
    this.#isClosed = true;
    for (const link of this.#idle.splice(0)) link.destroy();
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
}
