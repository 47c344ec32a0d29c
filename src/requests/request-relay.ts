import type { Clock, Random } from "../core/clock.ts";
import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import type { EventLog, LogItem, LogStart } from "../ports/event-log.ts";
import type { RequestGroup, RequestLease, RequestQueue } from "../ports/request-queue.ts";
import type { RequestFilter } from "./request-filter.ts";
import type { RequestListener, RequestState } from "./request-listener.ts";
import { contextName, streamPrefix } from "./request-names.ts";
import { type SortedPage, sortPage } from "./request-page.ts";
import { readAhead } from "./request-pages.ts";

/** A second copy of the position, in another place than the queue's. Throws FENCED when somebody else writes it. */
export interface PositionCopy {
  read(group: RequestGroup): Promise<string | null>;
  write(group: RequestGroup, position: string): Promise<void>;
}

interface RequestRelayOptions {
  readonly group: RequestGroup;
  readonly log: EventLog;
  readonly queue: RequestQueue;
  readonly filter: RequestFilter;
  /** Where whoever never dispatched begins. */
  readonly start: "beginning" | "now";
  /** Older events are passed over; 0 for none. */
  readonly sinceMs: number;
  /** Null when the position is kept in the queue alone. */
  readonly copy: PositionCopy | null;
  readonly owner: string;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly listener: RequestListener;
}

interface Drained {
  readonly dead: number;
  /** Another process dispatches for this context, so nothing was done here. */
  readonly isElsewhere: boolean;
}

const PAGE_MAX = 1_000;
/** Positions of pages without a job are written at most so often; whoever restarts reads those events again. */
const QUIET_WRITE_MS = 1_000;
/** What was done with a page is told while the next one is on its way; without a next one, so long after it. */
const TELL_MS = 100;
const PAUSE_MS = { first: 100, last: 10_000 };
/** Beyond it something is wrong with the events, not with one of them. */
const DEAD_MAX = 10_000;
const RENEWALS_PER_LEASE = 3;
const PATIENCE_LEASES = 1.5;

/** Trouble that goes away by itself at no time. */
const HALTS = ["QUEUE_FORGOT", "LOG_LOST", "EVENT_UNREADABLE", "CONFIG_INVALID"] as const;

/**
 * The relay of one context: reads the log from where the queue says, and dispatches a job for every event that asks
 * for one. All that it knows stands in the queue, so it may end at any moment.
 */
export class RequestRelay {
  readonly #options: RequestRelayOptions;
  #position: string | null = null;
  #unwritten: string | null = null;
  #writtenMs = 0;
  #copiedMs = Number.NEGATIVE_INFINITY;
  #deadCount = 0;
  #isElsewhere = false;
  #untold: (() => void) | null = null;

  constructor(options: RequestRelayOptions) {
    this.#options = options;
  }

  /** Until the signal aborts, or until a person has to help. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#live(signal, false);
  }

  /** Dispatches what is there. Rejects with the first trouble. */
  async drain(signal: AbortSignal): Promise<Drained> {
    await this.#live(signal, true);
    return { dead: this.#deadCount, isElsewhere: this.#isElsewhere };
  }

  async #live(signal: AbortSignal, once: boolean): Promise<void> {
    const { clock, group, leaseMs, owner, queue, random } = this.#options;
    let pauseMs = PAUSE_MS.first;
    const startedMs = clock.monotonicMs();
    this.#turn("starting");
    while (!signal.aborted) {
      try {
        const lease = await queue.acquire(group, owner, leaseMs);
        // Whoever died a moment ago is taken for living until its lease is over.
        this.#isElsewhere = lease === null && clock.monotonicMs() - startedMs > PATIENCE_LEASES * leaseMs;
        if (once && this.#isElsewhere) break;
        if (lease === null) {
          // So that it is noticed when the queue has forgotten it by the time that it is this one's turn.
          this.#position = (await queue.position(group)) ?? this.#position;
          this.#turn("standby");
          await clock.sleep(leaseMs / RENEWALS_PER_LEASE, signal);
          continue;
        }
        const isDone = await this.#serve(lease, signal, once, () => {
          pauseMs = PAUSE_MS.first;
        });
        if (isDone) break;
      } catch (error) {
        const isFinal = HALTS.some((code) => isRelayError(error, code));
        const code = isRelayError(error) ? error.code : "LOG_UNREACHABLE";
        this.#turn(isFinal ? "halted" : "broken", { code, reason: reasonOf(error) });
        if (once) throw error;
        if (isFinal) return;
        await clock.sleep(pauseMs * (0.5 + random.next()), signal);
        pauseMs = Math.min(PAUSE_MS.last, pauseMs * 2);
      }
    }
    this.#turn("stopped");
  }

  /** True when all was to be dispatched once, and is. */
  async #serve(lease: RequestLease, signal: AbortSignal, once: boolean, works: () => void): Promise<boolean> {
    const { group, log, queue } = this.#options;
    const over = new AbortController();
    const heartbeat = this.#beat(lease, over);
    try {
      const from = await this.#startOf(lease);
      this.#turn("running");
      const read = new AbortController();
      const either = AbortSignal.any([signal, over.signal, read.signal]);
      const pages = log.subscribe({ streamPrefix: streamPrefix(group), from, pageMax: PAGE_MAX, signal: either });
      for await (const { page, readOn } of readAhead(pages, read)) {
        const isCaughtUp = await this.#take(page, lease, readOn);
        works();
        if (once && isCaughtUp) break;
      }
      if (over.signal.aborted) throw over.signal.reason;
      await this.#flush(lease);
      return true;
    } finally {
      this.#tell();
      over.abort();
      await heartbeat;
      await queue.release(group, lease).catch(() => {});
    }
  }

  async #startOf({ position }: RequestLease): Promise<LogStart> {
    const { copy, group, queue, start } = this.#options;
    // Read in any case: whoever takes over writes it behind the former one.
    const copied = (await copy?.read(group)) ?? null;
    if (position === null && (this.#position ?? copied) !== null) {
      // Whoever froze since it got the lease sees what others have written meanwhile.
      const isLate = (await queue.position(group)) !== null;
      if (isLate) throw new RelayError("FENCED", `Another relay dispatches for ${contextName(group)} now.`);
      throw new RelayError(
        "QUEUE_FORGOT",
        `Redis knows nothing of ${contextName(group)} any more, which it did before.`,
      );
    }
    this.#position = position;
    this.#unwritten = null;
    if (position === null) return start;
    // As a person wished it.
    return position === "beginning" || position === "now" ? position : { after: position };
  }

  async #take(page: readonly LogItem[], lease: RequestLease, readOn: () => void): Promise<boolean> {
    const { clock, filter, group, listener, sinceMs } = this.#options;
    const nowMs = clock.wallMs();
    const sorted = sortPage(page, { group, filter, sinceMs, nowMs });
    if (sorted.position !== null) this.#unwritten = sorted.position;
    const hasWork = sorted.asked.length > 0 || sorted.buried.length > 0;
    const isQuiet = clock.monotonicMs() - this.#writtenMs < QUIET_WRITE_MS;
    if (hasWork) await this.#dispatch(sorted, lease, readOn);
    else if (!isQuiet || sorted.isCaughtUp) await this.#dispatch({ asked: [], buried: [] }, lease);
    for (const { event, link, reason } of sorted.skipped) listener.skipped(group, event, reason, link);
    if (sorted.isCaughtUp) listener.lag(group, 0);
    else if (sorted.newestMs !== null) listener.lag(group, Math.max(0, nowMs - sorted.newestMs));
    return sorted.isCaughtUp;
  }

  async #dispatch(
    { asked, buried }: Pick<SortedPage, "asked" | "buried">,
    lease: RequestLease,
    readOn: () => void = () => {},
  ): Promise<void> {
    const { clock, group, listener, queue } = this.#options;
    const position = this.#unwritten;
    if (position === null) return;
    const jobs = asked.map(({ job }) => job);
    const dead = buried.map((it) => it.dead);
    const batch = { jobs, dead, after: this.#position, position };
    const { deadCount, isNew } = await queue.dispatch(group, lease, batch, () => {
      readOn();
      this.#tell();
    });
    this.#tell();
    this.#position = position;
    this.#unwritten = null;
    this.#writtenMs = clock.monotonicMs();
    this.#untold = () => {
      for (const [index, { event, job }] of asked.entries()) {
        if (isNew[index]) listener.dispatched(group, event, job);
        else listener.skipped(group, event, "already dispatched");
      }
      for (const it of buried) listener.died(group, it.event, it.dead);
    };
    // Places without an event are items too, so that even a full page may have fewer jobs.
    if (jobs.length < PAGE_MAX / 2) this.#tell();
    else void clock.sleep(TELL_MS).then(() => this.#tell());
    await this.#copy(position);
    if (deadCount !== null) this.#deadCount = deadCount;
    if (this.#deadCount >= DEAD_MAX) throw tooManyDead(group, this.#deadCount);
  }

  #tell(): void {
    const tell = this.#untold;
    this.#untold = null;
    tell?.();
  }

  async #flush(lease: RequestLease): Promise<void> {
    if (this.#unwritten !== null) await this.#dispatch({ asked: [], buried: [] }, lease);
    if (this.#position !== null) await this.#copy(this.#position, true);
  }

  async #copy(position: string, now = false): Promise<void> {
    const { clock, copy, group } = this.#options;
    if (copy === null || (!now && clock.monotonicMs() - this.#copiedMs < QUIET_WRITE_MS)) return;
    await copy.write(group, position);
    this.#copiedMs = clock.monotonicMs();
  }

  /** Every write is fenced by the lease itself: this only keeps others from taking it. */
  async #beat(lease: RequestLease, over: AbortController): Promise<void> {
    const { clock, group, leaseMs, queue } = this.#options;
    let renewedMs = clock.monotonicMs();
    while (!over.signal.aborted) {
      await clock.sleep(leaseMs / RENEWALS_PER_LEASE, over.signal);
      if (over.signal.aborted) return;
      try {
        await queue.renew(group, lease, leaseMs);
        renewedMs = clock.monotonicMs();
      } catch (error) {
        const isLost = isRelayError(error, "FENCED") || clock.monotonicMs() - renewedMs > leaseMs;
        if (isLost) over.abort(error);
      }
    }
  }

  #turn(state: RequestState, why: Parameters<RequestListener["turned"]>[2] = null): void {
    this.#options.listener.turned(this.#options.group, state, why);
  }
}

function tooManyDead(group: RequestGroup, count: number): RelayError {
  return new RelayError(
    "EVENT_UNREADABLE",
    `${count} events of ${contextName(group)} ask for a job and cannot become one: correct whoever writes them, then \`outbox-relay requests replay\` or \`discard\` them.`,
  );
}
