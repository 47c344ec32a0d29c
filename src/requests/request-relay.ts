import { Backoff } from "../core/backoff.ts";
import type { Clock, Random } from "../core/clock.ts";
import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import type { EventLog, LogItem, LogStart } from "../ports/event-log.ts";
import type { RequestGroup, RequestLease, RequestQueue } from "../ports/request-queue.ts";
import type { RequestFilter } from "./request-filter.ts";
import type { RequestListener, RequestState } from "./request-listener.ts";
import { contextName, streamPrefix } from "./request-names.ts";
import { type SortedPage, sortPage } from "./request-page.ts";
import { readAhead } from "./request-pages.ts";

/** A second copy of the position outside the queue's Redis. Throws FENCED when another owner writes it. */
export interface PositionCopy {
  read(group: RequestGroup): Promise<string | null>;
  write(group: RequestGroup, position: string): Promise<void>;
}

interface RequestRelayOptions {
  readonly group: RequestGroup;
  readonly log: EventLog;
  readonly queue: RequestQueue;
  readonly filter: RequestFilter;
  /** Where a context starts that has no checkpoint yet. */
  readonly start: "beginning" | "now";
  /** Older events are skipped; 0 skips none. */
  readonly sinceMs: number;
  /** Null when only the queue keeps the position. */
  readonly copy: PositionCopy | null;
  readonly owner: string;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly listener: RequestListener;
}

interface Drained {
  readonly dead: number;
  /** Another process owns this context, so nothing was done here. */
  readonly isElsewhere: boolean;
}

const PAGE_MAX = 1_000;
/** The minimum time between two writes of a position without a job. After a restart those events are read again. */
const QUIET_WRITE_MS = 1_000;
/** Listeners are called while the next page is being written, or after this delay if there is no next page. */
const REPORT_DELAY_MS = 100;
const PAUSE_MS = { firstMs: 100, lastMs: 10_000 };
/** Beyond this number the fault lies with the writer of the events and not with single events. */
const DEAD_MAX = 10_000;
const RENEWALS_PER_LEASE = 3;
const TAKEOVER_LEASES = 1.5;

/** Errors that no retry resolves. */
const HALTS = ["QUEUE_FORGOT", "LOG_LOST", "EVENT_UNREADABLE", "CONFIG_INVALID"] as const;

/**
 * The relay of one context: reads the log from the position stored in the queue and dispatches a job for every event
 * that requests one. All of its state is in the queue, so it may stop at any moment.
 */
export class RequestRelay {
  readonly #options: RequestRelayOptions;
  #position: string | null = null;
  #unwritten: string | null = null;
  #writtenMs = 0;
  #copiedMs = Number.NEGATIVE_INFINITY;
  #deadCount = 0;
  #isElsewhere = false;
  #unreported: (() => void) | null = null;

  constructor(options: RequestRelayOptions) {
    this.#options = options;
  }

  /** Runs until the signal aborts or an operator must act. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#runLoop(signal, false);
  }

  /** Dispatches all events up to now. Rejects with the first error. */
  async drain(signal: AbortSignal): Promise<Drained> {
    await this.#runLoop(signal, true);
    return { dead: this.#deadCount, isElsewhere: this.#isElsewhere };
  }

  async #runLoop(signal: AbortSignal, once: boolean): Promise<void> {
    const { clock, group, leaseMs, owner, queue, random } = this.#options;
    const backoff = new Backoff(PAUSE_MS);
    const startedMs = clock.monotonicMs();
    this.#setState("starting");
    while (!signal.aborted) {
      try {
        const lease = await queue.acquire(group, owner, leaseMs);
        // An owner that has just died still holds its lease, so wait for its expiry before reporting another owner.
        this.#isElsewhere = lease === null && clock.monotonicMs() - startedMs > TAKEOVER_LEASES * leaseMs;
        if (once && this.#isElsewhere) break;
        if (lease === null) {
          // Remember the position, to detect a queue that has lost it by the time this process gets the lease.
          this.#position = (await queue.position(group)) ?? this.#position;
          this.#setState("standby");
          await clock.sleep(leaseMs / RENEWALS_PER_LEASE, signal);
          continue;
        }
        const isDone = await this.#dispatchUnderLease(lease, signal, once, () => backoff.reset());
        if (isDone) break;
      } catch (error) {
        const isFinal = HALTS.some((code) => isRelayError(error, code));
        const code = isRelayError(error) ? error.code : "LOG_UNREACHABLE";
        this.#setState(isFinal ? "halted" : "broken", { code, reason: reasonOf(error) });
        if (once) throw error;
        if (isFinal) return;
        await clock.sleep(backoff.nextMs() * (0.5 + random.next()), signal);
      }
    }
    this.#setState("stopped");
  }

  /** True when the signal aborted, or, with `once`, when everything is dispatched. */
  async #dispatchUnderLease(
    lease: RequestLease,
    signal: AbortSignal,
    once: boolean,
    works: () => void,
  ): Promise<boolean> {
    const { group, log, queue } = this.#options;
    const over = new AbortController();
    const heartbeat = this.#renewLoop(lease, over);
    try {
      const from = await this.#startOf(lease);
      this.#setState("running");
      const read = new AbortController();
      const either = AbortSignal.any([signal, over.signal, read.signal]);
      const pages = log.subscribe({ streamPrefix: streamPrefix(group), from, pageMax: PAGE_MAX, signal: either });
      for await (const { page, prefetch } of readAhead(pages, read)) {
        const isCaughtUp = await this.#processPage(page, lease, prefetch);
        works();
        if (once && isCaughtUp) break;
      }
      if (over.signal.aborted) throw over.signal.reason;
      await this.#flush(lease);
      return true;
    } finally {
      this.#reportDispatched();
      over.abort();
      await heartbeat;
      await queue.release(group, lease).catch(() => {});
    }
  }

  async #startOf({ position }: RequestLease): Promise<LogStart> {
    const { copy, group, queue, start } = this.#options;
    // Always read the copy: a new owner writes it after the former owner.
    const copied = (await copy?.read(group)) ?? null;
    if (position === null && (this.#position ?? copied) !== null) {
      // A process that froze after it got the lease sees the position that others have written since.
      const isLate = (await queue.position(group)) !== null;
      if (isLate) throw new RelayError("FENCED", `Another relay dispatches for ${contextName(group)} now.`);
      throw new RelayError(
        "QUEUE_FORGOT",
        `Redis has lost the position of ${contextName(group)}, which it had before.`,
      );
    }
    this.#position = position;
    this.#unwritten = null;
    if (position === null) return start;
    // An operator has set it by `requests seek`.
    return position === "beginning" || position === "now" ? position : { after: position };
  }

  async #processPage(page: readonly LogItem[], lease: RequestLease, prefetch: () => void): Promise<boolean> {
    const { clock, filter, group, listener, sinceMs } = this.#options;
    const nowMs = clock.wallMs();
    const sorted = sortPage(page, { group, filter, sinceMs, nowMs });
    if (sorted.position !== null) this.#unwritten = sorted.position;
    const hasWork = sorted.requested.length > 0 || sorted.deadEvents.length > 0;
    const isQuiet = clock.monotonicMs() - this.#writtenMs < QUIET_WRITE_MS;
    if (hasWork) await this.#dispatch(sorted, lease, prefetch);
    else if (!isQuiet || sorted.isCaughtUp) await this.#dispatch({ requested: [], deadEvents: [] }, lease);
    for (const { event, link, reason } of sorted.skipped) listener.skipped(group, event, reason, link);
    if (sorted.isCaughtUp) listener.lag(group, 0);
    else if (sorted.newestMs !== null) listener.lag(group, Math.max(0, nowMs - sorted.newestMs));
    return sorted.isCaughtUp;
  }

  async #dispatch(
    { requested, deadEvents }: Pick<SortedPage, "requested" | "deadEvents">,
    lease: RequestLease,
    prefetch: () => void = () => {},
  ): Promise<void> {
    const { clock, group, listener, queue } = this.#options;
    const position = this.#unwritten;
    if (position === null) return;
    const jobs = requested.map(({ job }) => job);
    const dead = deadEvents.map((it) => it.dead);
    const batch = { jobs, dead, after: this.#position, position };
    const { deadCount, isNew } = await queue.dispatch(group, lease, batch, () => {
      prefetch();
      this.#reportDispatched();
    });
    this.#reportDispatched();
    this.#position = position;
    this.#unwritten = null;
    this.#writtenMs = clock.monotonicMs();
    this.#unreported = () => {
      for (const [index, { event, job }] of requested.entries()) {
        if (isNew[index]) listener.dispatched(group, event, job);
        else listener.skipped(group, event, "already dispatched");
      }
      for (const it of deadEvents) listener.died(group, it.event, it.dead);
    };
    // Positions without an event are items too, so even a full page may hold few jobs.
    if (jobs.length < PAGE_MAX / 2) this.#reportDispatched();
    else void clock.sleep(REPORT_DELAY_MS).then(() => this.#reportDispatched());
    await this.#copy(position);
    if (deadCount !== null) this.#deadCount = deadCount;
    if (this.#deadCount >= DEAD_MAX) throw tooManyDead(group, this.#deadCount);
  }

  #reportDispatched(): void {
    const report = this.#unreported;
    this.#unreported = null;
    report?.();
  }

  async #flush(lease: RequestLease): Promise<void> {
    if (this.#unwritten !== null) await this.#dispatch({ requested: [], deadEvents: [] }, lease);
    if (this.#position !== null) await this.#copy(this.#position, true);
  }

  async #copy(position: string, now = false): Promise<void> {
    const { clock, copy, group } = this.#options;
    if (copy === null || (!now && clock.monotonicMs() - this.#copiedMs < QUIET_WRITE_MS)) return;
    await copy.write(group, position);
    this.#copiedMs = clock.monotonicMs();
  }

  /** Every write is fenced by the lease itself; renewal only keeps other processes from taking it. */
  async #renewLoop(lease: RequestLease, over: AbortController): Promise<void> {
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

  #setState(state: RequestState, why: Parameters<RequestListener["turned"]>[2] = null): void {
    this.#options.listener.turned(this.#options.group, state, why);
  }
}

function tooManyDead(group: RequestGroup, count: number): RelayError {
  return new RelayError(
    "EVENT_UNREADABLE",
    `${count} events of ${contextName(group)} request a job and cannot become one: fix the application that writes them, then \`outbox-relay requests replay\` or \`discard\` them.`,
  );
}
