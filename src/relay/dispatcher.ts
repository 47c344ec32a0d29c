import type { Clock } from "../core/clock.ts";
import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import type { Message } from "../core/event.ts";
import { type Failed, type Outcome, retry } from "../core/outcome.ts";
import type { Report } from "../ports/publisher.ts";
import type { PipelineContext } from "./context.ts";
import { noAnswerWithin, TIMED_OUT, withDeadline } from "./deadline.ts";
import type { Entry, FailedEntry, LaneQueue } from "./lane-queue.ts";
import type { RateGate } from "./rate-gate.ts";
import type { Sender } from "./sender.ts";

export interface Attempt {
  /** The one publish that is let through an open circuit. */
  readonly probe: boolean;
  /** When the publish began; null when nothing was sent. */
  readonly startedMs: number | null;
  readonly durationMs: number;
}

export interface DispatcherListener {
  delivered(entry: Entry, attempt: Attempt): void;
  /** All failures of one key's events in a publish, in their order. */
  failed(failures: readonly FailedEntry[], attempt: Attempt): void;
  /** Nobody knows what became of what was sent: the lane is void. */
  lost(error: unknown): void;
  /** False: stop sending, the lease or the lane is gone. */
  maySend(): boolean;
  /** Events in the next publish. */
  publishSize(): number;
  /** What a person lets through. */
  readonly limit: RateGate;
  /** What is known to become of the event without sending it; null when it is to be sent. */
  verdictBefore(entry: Entry): Failed | null;
  /** Called before an event is sent while the lane keeps crashing; false when it must not be sent. */
  beforeSend(entry: Entry): Promise<boolean> | null;
  /** These are being sent now. */
  sending(entries: readonly Entry[]): void;
}

/**
 * Publishes what waits in a lane's queue: several publishes at a time, each key in only one of them. Retries nothing
 * by itself: what an outcome means is the lane's business.
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
   * Sends as much as may be sent now. Cheap and legal at any time. What failed with the topic or the destination is no
   * probe, unless `withFailed` says that there is nothing better.
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

  /** A probe takes one event of each key: more of them would tell nothing. */
  #take(size: number, probe: boolean, withFailed: boolean): Entry[] {
    if (!probe) return this.#queue.take(size, this.#sender.manyOfKey);
    return this.#queue.take(size, false, ({ hasFailed, silences }) => withFailed || (!hasFailed && silences === 0));
  }

  /** Resolves when no publish is under way. */
  async idle(): Promise<void> {
    while (this.#publishes.size > 0) await Promise.all(this.#publishes.values());
  }

  /** Gives up what is on the wire; its outcomes are unknown and are not told. Resolves when nothing can arrive later. */
  async abandon(): Promise<void> {
    this.#abandoned = true;
    for (const controller of this.#publishes.keys()) controller.abort();
    await this.idle();
  }

  #start(entries: readonly Entry[], probe: boolean): void {
    const controller = new AbortController();
    // In the next turn: a publisher that answers at once must find its publish counted.
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
    let judged = 0;
    for (const entry of entries) {
      const verdict = this.#listener.verdictBefore(entry);
      const permission = verdict === null ? this.#listener.beforeSend(entry) : null;
      if (verdict !== null) {
        judged += 1;
        this.#tell(entry, verdict, { probe: false, startedMs: null, durationMs: 0 });
      } else if (permission === null || (await permission)) sent.push(entry);
    }
    const attempt = attemptFrom(startedMs, probe, this.#context.clock);
    const isOpen = new Uint8Array(sent.length).fill(1);
    const tell: Report = (index, outcome) => {
      if (isOpen[index] !== 1 || this.#abandoned) return;
      isOpen[index] = 0;
      this.#tell(sent[index]!, outcome, attempt);
    };
    // While all this was awaited, the lease may have ended or the lane been given up.
    const wasUnsent = !this.#listener.maySend();
    if (wasUnsent) for (const index of sent.keys()) tell(index, { kind: "skipped" });
    else this.#listener.sending(sent);
    const error = wasUnsent ? null : await this.#send(sent, tell, controller);
    // A probe that never reached the destination tells nothing about it.
    if (probe && (this.#abandoned || wasUnsent || judged === entries.length)) {
      this.#context.destination.cancelProbe();
    }
    for (const [index, entry] of sent.entries()) {
      if (isOpen[index] === 1) tell(index, this.#withoutAnswer(entry, error, startedMs));
    }
  }

  /** Null when the publisher returned by itself; otherwise why the rest has no answer. */
  async #send(entries: readonly Entry[], report: Report, controller: AbortController): Promise<unknown> {
    if (entries.length === 0 || this.#abandoned) return null;
    const { clock, destination, timing } = this.#context;
    const publish = (signal: AbortSignal) => this.#sender.publish(entries.map(messageOf), report, signal);
    try {
      if (this.#sender.keepsTime) await publish(controller.signal);
      else await withDeadline(clock, timing.publishTimeoutMs, controller.signal, publish, this.#impatience);
      return null;
    } catch (error) {
      return error === TIMED_OUT ? noAnswerWithin(destination.name, timing.publishTimeoutMs) : error;
    }
  }

  /** A publisher that ends no publish would keep the lane busy for ever, and nobody would know. */
  get #impatience() {
    const { destination, timing } = this.#context;
    const ms = timing.publishTimeoutMs + timing.leaseMs;
    const isStuck = () => void (this.#abandoned || this.#listener.lost(noAnswerWithin(destination.name, ms)));
    return { ms: timing.leaseMs, isStuck };
  }

  /**
   * A lost connection is the destination's failure. Silence may be the event's: if the destination answered others
   * since this event was first met with silence, the next silence is held against it.
   */
  #withoutAnswer(entry: Entry, error: unknown, startedMs: number): Failed {
    const { destination } = this.#context;
    const reason = reasonOf(error ?? unanswered(destination.name));
    const isSilence = error === null || isRelayError(error, "PUBLISH_UNKNOWN");
    if (!isSilence) return retry(reason, { scope: "destination", error });
    const isFirst = entry.silentSinceMs === null;
    entry.silentSinceMs ??= startedMs;
    entry.silences += 1;
    if (!destination.answeredSince(entry.silentSinceMs)) return retry(reason, { scope: "destination", error });
    return isFirst ? { kind: "skipped" } : retry(reason, { error });
  }

  #tell(entry: Entry, outcome: Outcome, attempt: Attempt): void {
    const failures = outcome.kind === "delivered" ? this.#queue.delivered(entry) : this.#queue.failed(entry, outcome);
    if (outcome.kind === "delivered") this.#listener.delivered(entry, attempt);
    if (failures.length > 0) this.#listener.failed(failures, attempt);
  }

  #now(): number {
    return this.#context.clock.monotonicMs();
  }
}

/** Few ask how long it took, and the clock is not free. */
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
  return new RelayError("PUBLISH_UNKNOWN", `${destination} did not say what became of the event.`);
}

function messageOf(entry: Entry): Message {
  return entry.message!;
}
