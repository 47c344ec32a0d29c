import { Turns } from "../../core/turns.ts";
import type { Amqp, Wire } from "./rabbitmq-client.ts";
import { openWire } from "./rabbitmq-client.ts";
import type { RabbitSettings } from "./rabbitmq-config.ts";
import { RabbitLink } from "./rabbitmq-link.ts";

/** Publishes at the same time, each over a connection of its own; more of them wait. */
const LINKS_MAX = 16;

/** A connection whose blocking nobody revokes may be dead: another one finds out. */
const BLOCKED_MS_MAX = 60_000;

/** The connections to one cluster. */
export class RabbitLinkPool {
  readonly #amqp: Amqp;
  readonly #settings: RabbitSettings;
  readonly #idle: RabbitLink[] = [];
  /** The server would carry out late what is on a blocked link, so that each probe would add one more duplicate. */
  readonly #blocked = new Map<RabbitLink, number>();
  readonly #turns = new Turns(LINKS_MAX);
  #nextHost = 0;
  #isClosed = false;

  constructor(amqp: Amqp, settings: RabbitSettings) {
    this.#amqp = amqp;
    this.#settings = settings;
  }

  /** While the server takes no messages: why. */
  blockedBy(): unknown {
    for (const [link, sinceMs] of this.#blocked) {
      if (link.blockedBy !== null && performance.now() - sinceMs < BLOCKED_MS_MAX) return link.blockedBy;
      this.#blocked.delete(link);
      link.destroy();
    }
    return null;
  }

  /** Null when the signal aborts before there is one; rejects when no host lets us in. */
  async take(signal: AbortSignal): Promise<RabbitLink | null> {
    if (!(await this.#turns.take(signal))) return null;
    for (let link = this.#idle.pop(); link !== undefined; link = this.#idle.pop()) {
      if (!link.isSpent) return link;
      this.#putAside(link);
    }
    const link = await this.#open(signal).catch((error: unknown) => {
      this.#turns.giveBack();
      throw error;
    });
    if (link === null) this.#turns.giveBack();
    return link;
  }

  giveBack(link: RabbitLink): void {
    this.#turns.giveBack();
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

  /** The client cannot be stopped while it connects: what comes too late is thrown away. */
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

  /** Begins with the host that answered last; one that does not is left for the next. */
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
