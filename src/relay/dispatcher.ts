import type { Clock } from "../core/clock.ts";
import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import type { Message } from "../core/event.ts";
import { type Failed, retry } from "../core/outcome.ts";
import type { PipelineContext } from "./context.ts";
import { noAnswerWithin, PublishClock, TIMED_OUT, withDeadline } from "./deadline.ts";
import type { Entry, FailedEntry, LaneQueue } from "./lane-queue.ts";
import { PublishAnswers } from "./publish-answers.ts";
import type { RateGate } from "./rate-gate.ts";
import type { Answers, Sender } from "./sender.ts";

/** One publish, as far as it concerns a single event. */
export interface Attempt {
  /** True for the publish that an open circuit lets through. */
  readonly probe: boolean;
  /** When the publish began; null when nothing was sent. */
  readonly startedMs: number | null;
  readonly durationMs: number;
}

/** What the dispatcher asks and reports to its lane. */
export interface DispatcherListener {
  /**
   * Delivered events of one publish, as many as were reported together. `batch` is the number of the batch that they
   * are in the destination's ledger; null without a ledger.
   */
  delivered(entries: readonly Entry[], attempt: Attempt, batch: bigint | null): void;
  /** All failures of one key's events in a publish, in order. */
  failed(failures: readonly FailedEntry[], attempt: Attempt): void;
  /** The outcome of the publish is unknown and stays so: the lane is void. */
  lost(error: unknown): void;
  /** False when nothing may be sent, because the lease or the lane is gone. */
  maySend(): boolean;
  /** The number of events in the next publish. */
  publishSize(): number;
  /** The operator's rate limit. */
  readonly limit: RateGate;
  /**
   * The outcome of an event that need not be sent, because it is faulty or never answered; null when it must be sent.
   */
  outcomeBefore(entry: Entry): Failed | null;
  /** Called before an event is sent while the lane keeps crashing; false when it must not be sent. */
  beforeSend(entry: Entry): Promise<boolean> | null;
  /** The dispatcher sends these events now. */
  sending(entries: readonly Entry[]): void;
}

/**
 * Publishes the events of a lane's queue: several publishes at a time, but each key in only one of them, because two
 * publishes may arrive in any order. It retries nothing: the lane decides what an outcome means.
 */
export class Dispatcher {
  readonly #context: PipelineContext;
  readonly #queue: LaneQueue;
  readonly #sender: Sender;
  readonly #listener: DispatcherListener;
  readonly #publishes = new Map<AbortController, Promise<void>>();
  #abandoned = false;

  constructor(context: PipelineContext, queue: LaneQueue, sender: Sender, listener: DispatcherListener) {
    this.#context = context;
    this.#queue = queue;
    this.#sender = sender;
    this.#listener = listener;
  }

  /**
   * Sends as much as may be sent now. Cheap and legal at any time. An event that failed with its topic or destination
   * is not used as a probe, unless `withFailed` says that there is no better one.
   */
  pump(withFailed = false): void {
    const { destination } = this.#context;
    const { limit } = this.#listener;
    while (this.#queue.waiting > 0 && this.#publishes.size < this.#sender.publishesMax) {
      if (this.#abandoned || !this.#listener.maySend()) return;
      const { admits } = destination.admission();
      if (admits === "none") return;
      const probe = admits === "probe";
      const publishSize = this.#listener.publishSize();
      const permitted = limit.allowance(probe ? Math.min(destination.probeKeys, publishSize) : publishSize);
      const size = destination.allowance(permitted);
      const entries = size > 0 ? this.#take(size, probe, withFailed) : [];
      destination.giveBack(size - entries.length);
      limit.giveBack(permitted - entries.length);
      if (entries.length === 0) return;
      if (probe) destination.beginProbe();
      this.#start(entries, probe);
    }
  }

  /** A probe takes one event of each key: further events of the key would prove nothing. */
  #take(size: number, probe: boolean, withFailed: boolean): Entry[] {
    if (!probe) return this.#queue.take(size, this.#sender.manyOfKey);
    return this.#queue.take(
      size,
      false,
      ({ hasFailed, unansweredSends }) => withFailed || (!hasFailed && unansweredSends === 0),
    );
  }

  /** Resolves when no publish is on the wire. */
  async idle(): Promise<void> {
    while (this.#publishes.size > 0) await Promise.all(this.#publishes.values());
  }

  /**
   * Aborts all publishes; their outcomes are unknown and are not reported. Resolves when nothing can arrive any more.
   */
  async abandon(): Promise<void> {
    this.#abandoned = true;
    for (const controller of this.#publishes.keys()) controller.abort();
    await this.idle();
  }

  #start(entries: readonly Entry[], probe: boolean): void {
    const controller = new AbortController();
    // In a microtask: a publisher that answers at once must find its publish registered.
    const publish = Promise.resolve()
      .then(() => this.#publish(entries, probe, controller))
      .finally(() => {
        this.#publishes.delete(controller);
        this.pump();
      });
    this.#publishes.set(controller, publish);
  }

  async #publish(entries: readonly Entry[], probe: boolean, controller: AbortController): Promise<void> {
    const startedMs = this.#now();
    const sent: Entry[] = [];
    let unsent = 0;
    for (const entry of entries) {
      const outcome = this.#listener.outcomeBefore(entry);
      const permission = outcome === null ? this.#listener.beforeSend(entry) : null;
      if (outcome !== null) {
        unsent += 1;
        this.#failed(entry, outcome, { probe: false, startedMs: null, durationMs: 0 });
      } else if (permission === null || (await permission)) sent.push(entry);
    }
    const attempt = attemptFrom(startedMs, probe, this.#context.clock);
    // While the lane awaited its permissions, the lease may have ended or the lane may have been given up.
    const wasUnsent = !this.#listener.maySend();
    const measured = wasUnsent ? null : this.#measure(sent);
    const answers = new PublishAnswers(sent, measured, {
      isOver: () => this.#abandoned,
      delivered: (some, batch) => this.#delivered(some, attempt, batch),
      failed: (entry, outcome) => this.#failed(entry, outcome, attempt),
    });
    if (wasUnsent) for (const index of sent.keys()) answers.report(index, { kind: "skipped" });
    else this.#listener.sending(sent);
    const error = wasUnsent ? null : await this.#send(sent, answers, controller, measured);
    // A probe that never reached the destination proves nothing about it; without a cancel the circuit would wait for
    // ever.
    if (probe && (this.#abandoned || wasUnsent || unsent === entries.length)) {
      this.#context.destination.cancelProbe();
    }
    for (const [index, entry] of answers.unanswered()) {
      answers.report(index, this.#withoutAnswer(entry, error, startedMs));
    }
  }

  /**
   * Does not measure a publish of held events alone: their times say something about the events, not the destination.
   */
  #measure(entries: readonly Entry[]): PublishClock | null {
    if (this.#abandoned || entries.every(({ isHead }) => isHead)) return null;
    return new PublishClock(this.#context.destination.answers, this.#now(), this.#sender.timesRequests);
  }

  /** Null when the publisher returned; otherwise the reason why the remaining events have no answer. */
  async #send(
    entries: readonly Entry[],
    answers: Answers,
    controller: AbortController,
    measured: PublishClock | null,
  ): Promise<unknown> {
    if (entries.length === 0 || this.#abandoned) return null;
    const { clock, destination, timing } = this.#context;
    const publish = (signal: AbortSignal) =>
      this.#sender.publish(entries.map(messageOf), answers, signal, measured?.requests);
    try {
      if (this.#sender.keepsTime) await publish(controller.signal);
      else await withDeadline(clock, timing.publishTimeoutMs, controller.signal, publish, this.#stuckGuard);
      measured?.end(null);
      return null;
    } catch (error) {
      measured?.end(error);
      return error === TIMED_OUT ? noAnswerWithin(destination.name, timing.publishTimeoutMs) : error;
    }
  }

  /** A publisher that never ends a publish would silently block the lane for ever, so the lane is given up instead. */
  get #stuckGuard() {
    const { destination, timing } = this.#context;
    const ms = timing.publishTimeoutMs + timing.leaseMs;
    const onStuck = () => void (this.#abandoned || this.#listener.lost(noAnswerWithin(destination.name, ms)));
    return { ms: timing.leaseMs, onStuck };
  }

  /**
   * The outcome of an event without an answer. A lost connection is the destination's failure. A missing answer may be
   * the event's: if the destination has answered others since this event first got no answer, the event fails.
   */
  #withoutAnswer(entry: Entry, error: unknown, startedMs: number): Failed {
    const { destination } = this.#context;
    const reason = reasonOf(error ?? unanswered(destination.name));
    const isUnanswered = error === null || isRelayError(error, "PUBLISH_UNKNOWN");
    if (!isUnanswered) return retry(reason, { scope: "destination", error });
    const isFirst = entry.unansweredSinceMs === null;
    entry.unansweredSinceMs ??= startedMs;
    entry.unansweredSends += 1;
    if (!destination.answeredSince(entry.unansweredSinceMs)) return retry(reason, { scope: "destination", error });
    return isFirst ? { kind: "skipped" } : retry(reason, { error });
  }

  /** Several events at once, because for most of them nothing is left to decide. */
  #delivered(entries: readonly Entry[], attempt: Attempt, batch: bigint | null): void {
    const failures = entries.map((entry) => this.#queue.delivered(entry)).filter(({ length }) => length > 0);
    this.#listener.delivered(entries, attempt, batch);
    for (const ofKey of failures) this.#listener.failed(ofKey, attempt);
  }

  #failed(entry: Entry, outcome: Failed, attempt: Attempt): void {
    const failures = this.#queue.failed(entry, outcome);
    if (failures.length > 0) this.#listener.failed(failures, attempt);
  }

  #now(): number {
    return this.#context.clock.monotonicMs();
  }
}

/** Reads the clock for the duration only when a listener asks for it: few do, and the clock is not free. */
function attemptFrom(startedMs: number, probe: boolean, clock: Clock): Attempt {
  return {
    probe,
    startedMs,
    get durationMs() {
      return clock.monotonicMs() - startedMs;
    },
  };
}

function unanswered(destination: string): RelayError {
  return new RelayError("PUBLISH_UNKNOWN", `${destination} did not report the outcome of the event.`);
}

function messageOf(entry: Entry): Message {
  return entry.message!;
}
