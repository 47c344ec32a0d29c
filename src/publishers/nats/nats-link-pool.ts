import type { NatsLink } from "./nats-link.ts";

/** Publishes at the same time; more of them wait. Each has a connection of its own, so giving one up harms no other. */
const LINKS_MAX = 16;

export class NatsLinkPool {
  readonly #open: (signal: AbortSignal) => Promise<NatsLink>;
  readonly #idle: NatsLink[] = [];
  readonly #waiting: (() => void)[] = [];
  #used = 0;
  #isClosed = false;

  constructor(open: (signal: AbortSignal) => Promise<NatsLink>) {
    this.#open = open;
  }

  /** Rejects when no connection comes about, or the signal aborts before. */
  async take(signal: AbortSignal): Promise<NatsLink> {
    while (this.#used >= LINKS_MAX && !signal.aborted) await this.#next(signal);
    signal.throwIfAborted();
    for (let link = this.#idle.pop(); link !== undefined; link = this.#idle.pop()) {
      if (link.isSpent) continue;
      this.#used += 1;
      return link;
    }
    this.#used += 1;
    try {
      return await this.#opened(signal);
    } catch (error) {
      this.#leave();
      throw error;
    }
  }

  giveBack(link: NatsLink): void {
    if (link.isSpent || this.#isClosed) void link.destroy();
    else this.#idle.push(link);
    this.#leave();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#idle.splice(0).map((link) => link.destroy()));
  }

  /** A connection that comes about after the abort has carried nothing and is closed again. */
  async #opened(signal: AbortSignal): Promise<NatsLink> {
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    aborted.catch(() => {});
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    const opening = this.#open(signal);
    try {
      return await Promise.race([opening, aborted]);
    } catch (error) {
      opening.then((link) => link.destroy()).catch(() => {});
      throw error;
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  #leave(): void {
    this.#used -= 1;
    this.#waiting.shift()?.();
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
