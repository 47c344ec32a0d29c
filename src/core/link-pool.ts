import { type Clock, systemClock, withinTime } from "./clock.ts";
import { RelayError } from "./errors.ts";
import type { Outcome } from "./outcome.ts";
import { Semaphore } from "./semaphore.ts";

/** Publishes at the same time; further ones wait. */
export const LINKS_MAX = 16;
/** A link that is idle for this long is closed. */
export const IDLE_MS = 30_000;

/** What the pool needs of a link. */
interface Link {
  /** True when the link must not be used again. */
  readonly isSpent: boolean;
  destroy(): Promise<void> | void;
}

/**
 * A pool of links (connections or channels) to a destination. Each carries one publish at a time, so an abort harms no
 * other.
 */
export class LinkPool<L extends Link> {
  readonly #create: () => L;
  readonly #clock: Clock;
  readonly #idle: { readonly link: L; readonly sinceMs: number }[] = [];
  readonly #permits = new Semaphore(LINKS_MAX);
  readonly #closed = new AbortController();
  #isSweeping = false;

  constructor(create: () => L, clock: Clock = systemClock) {
    this.#create = create;
    this.#clock = clock;
  }

  /** A link for one publish, which must give it back. Null when the signal aborts before one is free. */
  async take(signal: AbortSignal): Promise<L | null> {
    if (!(await this.#permits.acquire(signal))) return null;
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (!idle.link.isSpent) return idle.link;
      void idle.link.destroy();
    }
    return this.#create();
  }

  /** The publish is over. A spent link is destroyed. */
  giveBack(link: L): void {
    if (link.isSpent || this.#closed.signal.aborted) void link.destroy();
    else this.#idle.push({ link, sinceMs: this.#clock.monotonicMs() });
    this.#permits.release();
    void this.#sweep();
  }

  /** Destroys the idle links; links in use are destroyed when they are given back. */
  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.all(this.#idle.splice(0).map(({ link }) => link.destroy()));
  }

  /** Closes links that were idle for too long. Runs while any link is idle. */
  async #sweep(): Promise<void> {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    while (this.#idle.length > 0 && !this.#closed.signal.aborted) {
      await this.#clock.sleep(IDLE_MS, this.#closed.signal);
      const untilMs = this.#clock.monotonicMs() - IDLE_MS;
      // The link given back last is used first, so the ones in front have been idle longest.
      while ((this.#idle[0]?.sinceMs ?? Number.POSITIVE_INFINITY) <= untilMs) void this.#idle.shift()?.link.destroy();
    }
    this.#isSweeping = false;
  }
}

type Report = (index: number, outcome: Outcome) => void;

interface LinkUse {
  /** The destination, for people. */
  readonly name: string;
  readonly requestTimeoutMs: number;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * One publish over a link of its own. When the signal aborts or the time is over, the link is destroyed, nothing is
 * reported any more, and the publish rejects with PUBLISH_UNKNOWN.
 */
export async function publishOverLink<L extends Link>(
  pool: LinkPool<L>,
  { name, requestTimeoutMs, report, signal }: LinkUse,
  publish: (link: L, report: Report) => Promise<void>,
): Promise<void> {
  const givenUp = `the publish to "${name}" was given up.`;
  const link = await pool.take(signal);
  if (link === null) throw new RelayError("PUBLISH_UNKNOWN", givenUp);
  let isOver = false;
  const reportOpen: Report = (index, outcome) => {
    if (!isOver && !signal.aborted) report(index, outcome);
  };
  const late = () => {
    isOver = true;
    void link.destroy();
    const silent = `"${name}" did not answer within ${requestTimeoutMs} ms.`;
    return new RelayError("PUBLISH_UNKNOWN", signal.aborted ? givenUp : silent);
  };
  try {
    await withinTime(publish(link, reportOpen), requestTimeoutMs, signal, late);
  } finally {
    isOver = true;
    pool.giveBack(link);
  }
}
