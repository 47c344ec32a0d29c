import { Turns } from "../../core/turns.ts";
import type { NatsLink } from "./nats-link.ts";

/** Publishes at the same time; more of them wait. Each has a connection of its own, so giving one up harms no other. */
const LINKS_MAX = 16;

export class NatsLinkPool {
  readonly #open: (signal: AbortSignal) => Promise<NatsLink>;
  readonly #idle: NatsLink[] = [];
  readonly #turns = new Turns(LINKS_MAX);
  #isClosed = false;

  constructor(open: (signal: AbortSignal) => Promise<NatsLink>) {
    this.#open = open;
  }

  /** Rejects when no connection comes about, or the signal aborts before. */
  async take(signal: AbortSignal): Promise<NatsLink> {
    if (!(await this.#turns.take(signal))) throw signal.reason;
    for (let link = this.#idle.pop(); link !== undefined; link = this.#idle.pop()) {
      if (!link.isSpent) return link;
    }
    try {
      return await this.#opened(signal);
    } catch (error) {
      this.#turns.giveBack();
      throw error;
    }
  }

  giveBack(link: NatsLink): void {
    if (link.isSpent || this.#isClosed) void link.destroy();
    else this.#idle.push(link);
    this.#turns.giveBack();
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
}
