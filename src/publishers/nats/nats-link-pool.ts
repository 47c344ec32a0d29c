import { Semaphore } from "../../core/semaphore.ts";
import { orAborted } from "../../core/within-time.ts";
import type { NatsLink } from "./nats-link.ts";

/** The maximum number of concurrent publishes. Each has its own connection, so aborting one does not affect others. */
const LINKS_MAX = 16;

/** The connections to one cluster. */
export class NatsLinkPool {
  readonly #open: (signal: AbortSignal) => Promise<NatsLink>;
  readonly #idle: NatsLink[] = [];
  readonly #permits = new Semaphore(LINKS_MAX);
  #isClosed = false;

  constructor(open: (signal: AbortSignal) => Promise<NatsLink>) {
    this.#open = open;
  }

  /** Rejects when no connection can be opened, or the signal aborts first. */
  async take(signal: AbortSignal): Promise<NatsLink> {
    if (!(await this.#permits.acquire(signal))) throw signal.reason;
    for (let link = this.#idle.pop(); link !== undefined; link = this.#idle.pop()) {
      if (!link.isSpent) return link;
    }
    try {
      return await this.#opened(signal);
    } catch (error) {
      this.#permits.release();
      throw error;
    }
  }

  giveBack(link: NatsLink): void {
    if (link.isSpent || this.#isClosed) void link.destroy();
    else this.#idle.push(link);
    this.#permits.release();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#idle.splice(0).map((link) => link.destroy()));
  }

  /** A connection that opens after the abort has carried nothing and is closed. */
  async #opened(signal: AbortSignal): Promise<NatsLink> {
    const opening = this.#open(signal);
    try {
      return await orAborted(opening, signal, () => signal.reason);
    } catch (error) {
      opening.then((link) => link.destroy()).catch(() => {});
      throw error;
    }
  }
}
