import { Semaphore } from "../../core/semaphore.ts";
import type { Amqp, Wire } from "./rabbitmq-client.ts";
import { openWire } from "./rabbitmq-client.ts";
import type { RabbitSettings } from "./rabbitmq-config.ts";
import { RabbitLink } from "./rabbitmq-link.ts";

/** The maximum number of concurrent publishes, each over its own connection. */
const LINKS_MAX = 16;

/** A connection that stays blocked for this long may be dead: the next publish opens a new one. */
const BLOCKED_MS_MAX = 60_000;

/** The connections to one cluster. */
export class RabbitLinkPool {
  readonly #amqp: Amqp;
  readonly #settings: RabbitSettings;
  readonly #idle: RabbitLink[] = [];
  /**
   * Blocked links are kept and nothing more is sent: the server processes their messages later, so each probe would add
   * a duplicate.
   */
  readonly #blocked = new Map<RabbitLink, number>();
  readonly #permits = new Semaphore(LINKS_MAX);
  #nextHost = 0;
  #isClosed = false;

  constructor(amqp: Amqp, settings: RabbitSettings) {
    this.#amqp = amqp;
    this.#settings = settings;
  }

  /** Why the server blocks publishers; null if it does not. */
  blockedBy(): unknown {
    for (const [link, sinceMs] of this.#blocked) {
      if (link.blockedBy !== null && performance.now() - sinceMs < BLOCKED_MS_MAX) return link.blockedBy;
      this.#blocked.delete(link);
      link.destroy();
    }
    return null;
  }

  /** Null when the signal aborts first; rejects when no host accepts the connection. */
  async take(signal: AbortSignal): Promise<RabbitLink | null> {
    if (!(await this.#permits.acquire(signal))) return null;
    for (let link = this.#idle.pop(); link !== undefined; link = this.#idle.pop()) {
      if (!link.isSpent) return link;
      this.#putAside(link);
    }
    const link = await this.#open(signal).catch((error: unknown) => {
      this.#permits.release();
      throw error;
    });
    if (link === null) this.#permits.release();
    return link;
  }

  giveBack(link: RabbitLink): void {
    this.#permits.release();
    if (link.isSpent || this.#isClosed) this.#putAside(link);
    else this.#idle.push(link);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const link of this.#blocked.keys()) link.destroy();
    await Promise.all(this.#idle.splice(0).map((link) => link.close()));
  }

  #putAside(link: RabbitLink): void {
    if (link.blockedBy === null || this.#isClosed) link.destroy();
    else this.#blocked.set(link, performance.now());
  }

  /** The client cannot abort a connection attempt, so a late connection is destroyed. */
  async #open(signal: AbortSignal): Promise<RabbitLink | null> {
    const { promise: aborted, resolve } = Promise.withResolvers<null>();
    const abort = () => resolve(null);
    signal.addEventListener("abort", abort, { once: true });
    const opening = this.#openAny();
    try {
      const link = await Promise.race([opening, aborted]);
      if (link === null) void opening.then((late) => late.destroy()).catch(() => {});
      return link;
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** Starts with the host that answered last, and moves on to the next when it fails. */
  async #openAny(): Promise<RabbitLink> {
    const errors: unknown[] = [];
    const { hosts } = this.#settings;
    for (let tried = 0; tried < hosts.length; tried++) {
      const at = this.#nextHost % hosts.length;
      try {
        return this.#linkOf(await openWire(this.#amqp, this.#settings, hosts[at]!));
      } catch (error) {
        errors.push(error);
        if (this.#nextHost % hosts.length === at) this.#nextHost += 1;
      }
    }
    throw errors.length === 1 ? errors[0] : new AggregateError(errors, "no host can be reached");
  }

  #linkOf(wire: Wire): RabbitLink {
    return new RabbitLink(wire, this.#settings, (link) => {
      if (this.#blocked.delete(link)) link.destroy();
    });
  }
}
