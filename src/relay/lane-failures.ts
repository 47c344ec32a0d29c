import type { Failed } from "../core/outcome.ts";
import type { DeadLetterNote, Failure } from "../ports/queue-store.ts";
import type { PipelineContext } from "./context.ts";
import type { Attempt } from "./dispatcher.ts";
import { nextAfterFailure } from "./failure-rule.ts";
import type { HoldBook, KeptHold } from "./hold-book.ts";
import type { IntentReports } from "./intent-reports.ts";
import type { Entry, FailedEntry, LaneQueue } from "./lane-queue.ts";
import type { Settler } from "./settler.ts";
import { policyFor } from "./translation.ts";

/** So often an event may go without an answer in a row before it makes room for others. */
const SILENCES_MAX = 2;
/** It is tried again when the circuit had time for so many probes by others. */
const SET_ASIDE_PROBES = 10;

/** A circuit decides when it is tried again. */
const BY_CIRCUIT = { retryInMs: null, isDead: false };

type EventFailure = Exclude<Failed, { kind: "skipped" }>;
type Retry = Extract<Failed, { kind: "retry" }>;

interface LaneParts {
  readonly context: PipelineContext;
  readonly queue: LaneQueue;
  readonly holds: HoldBook;
  readonly reports: IntentReports;
  readonly settler: Settler;
  /** Claimed events that are not sent after all. */
  readonly handBack: (entries: readonly Entry[]) => void;
}

/** What a failure means to its lane: a hold, an open circuit, or simply once more. */
export class LaneFailures {
  readonly #parts: LaneParts;

  constructor(parts: LaneParts) {
    this.#parts = parts;
  }

  /**
   * All failures of one key's events in a publish, in their order. In a transaction one event can spoil it for those
   * before it as well: they go first once more, then that one without company, so that a hold is always of the key's
   * first event.
   */
  failed(failures: readonly FailedEntry[], attempt: Attempt): void {
    const judged = failures.findIndex(({ outcome }) => outcome.kind !== "skipped");
    const { entry, outcome } = failures[Math.max(0, judged)]!;
    const entries = failures.map((failure) => failure.entry);
    if (judged > 0 && outcome.kind !== "skipped" && outcome.scope !== "destination") {
      entry.isAlone = true;
      this.#notJudged(entries, attempt);
      return;
    }
    if (outcome.kind === "skipped") this.#notJudged(entries, attempt);
    else if (outcome.scope === "event") this.#eventFailed(entry, entries.slice(1), outcome, attempt);
    else if (outcome.scope === "topic") this.#topicFailed(entries, outcome, attempt);
    else this.#destinationFailed(entries, outcome, attempt);
  }

  /** The failure is written: from now on its hold counts. */
  settled(failure: Failure, entry: Entry | undefined, dead: readonly DeadLetterNote[]): void {
    const { context, holds, reports } = this.#parts;
    const { id, next } = failure;
    const hold = holds.get(id);
    if (hold !== undefined) {
      const dueAtMs = next.kind === "retry" ? context.clock.monotonicMs() + this.#delayOf(hold, next.delayMs) : 0;
      holds.put({ ...hold, dueAtMs, parks: next.kind === "retry" || next.parks });
    }
    if (next.kind !== "dead") return;
    reports.deadLettered(failure, next.parks, { entry, note: dead.find((note) => note.id === id) });
  }

  /** Failures so far. */
  attemptsOf(entry: Entry): number {
    return Math.max(entry.event.failures, this.#parts.holds.get(entry.event.id)?.attempts ?? 0);
  }

  /** It tells nothing about the destination either, so that another probe may go. */
  #notJudged(entries: readonly Entry[], attempt: Attempt): void {
    const { context, queue } = this.#parts;
    queue.putBack(entries);
    if (attempt.probe) context.destination.cancelProbe();
  }

  #destinationFailed(entries: readonly Entry[], outcome: EventFailure, attempt: Attempt): void {
    const { context, queue, reports } = this.#parts;
    for (const entry of entries) reports.failed(entry, outcome, attempt, this.attemptsOf(entry) + 1, BY_CIRCUIT);
    if (entries[0]!.silences < SILENCES_MAX) queue.putBack(entries);
    else this.#setAside(entries[0]!, entries.slice(1), outcome.reason);
    const afterMs = (outcome as Retry).afterMs;
    context.destination.failed(outcome.reason, { probe: attempt.probe, afterMs, error: outcome.error });
  }

  /** Nobody knows whose fault it is: the event makes room for others to find out, and no attempt is spent. */
  #setAside(entry: Entry, followers: readonly Entry[], reason: string): void {
    const delayMs = this.#parts.context.timing.circuitInitialMs;
    this.#hold(entry, followers, { attempts: this.attemptsOf(entry), reason, next: { kind: "retry", delayMs } }, true);
  }

  #topicFailed(entries: readonly Entry[], outcome: EventFailure, attempt: Attempt): void {
    const { context, handBack, queue, reports } = this.#parts;
    const { event, message, topicProbe } = entries[0]!;
    const topic = message!.topic;
    reports.failed(entries[0]!, outcome, attempt, this.attemptsOf(entries[0]!) + 1, BY_CIRCUIT);
    context.destination.topicFailed(topic, event.type, outcome.reason, {
      probe: topicProbe,
      afterMs: (outcome as Retry).afterMs,
      error: outcome.error,
    });
    if (attempt.probe) context.destination.cancelProbe();
    const waiting = event.key === null ? [] : queue.dropKey(event.key);
    const others = queue.dropLinesWith((entry) => entry.message?.topic === topic);
    handBack([...entries, ...waiting, ...others]);
  }

  #eventFailed(entry: Entry, followers: readonly Entry[], outcome: EventFailure, attempt: Attempt): void {
    const { context, reports } = this.#parts;
    const { destination, random } = context;
    const counts = entry.fault !== null || destination.eventFailed(entry.event.id, outcome.reason, attempt.probe);
    if (!counts) {
      reports.recordFailed(entry, outcome, attempt, this.attemptsOf(entry) + 1);
      this.#setAside(entry, followers, outcome.reason);
      return;
    }
    const attempts = this.attemptsOf(entry) + 1;
    const next = nextAfterFailure(policyFor(context, entry.event), outcome, attempts, random.next());
    const retryInMs = next.kind === "retry" ? next.delayMs : null;
    reports.failed(entry, outcome, attempt, attempts, { retryInMs, isDead: next.kind === "dead" });
    this.#hold(entry, followers, { attempts, reason: outcome.reason, next });
  }

  #hold(
    entry: Entry,
    followers: readonly Entry[],
    failure: Pick<Failure, "attempts" | "reason" | "next">,
    isSetAside = false,
  ): void {
    const { handBack, holds, queue, settler } = this.#parts;
    const { id, key } = entry.event;
    const { attempts, next } = failure;
    const crashes = holds.get(id)?.crashes ?? 0;
    const { silentSinceMs } = entry;
    // Not due, and nothing of its key may pass, before it is written: a hold must never be ahead of its row.
    const dueAtMs = Number.POSITIVE_INFINITY;
    const dead = next.kind === "dead";
    holds.put({ id, key, dead, parks: true, attempts, crashes, dueAtMs, silentSinceMs, isSetAside });
    handBack([...followers, ...(key === null ? [] : queue.dropKey(key))]);
    settler.failed({ id, key, ...failure });
  }

  /** In the database a set-aside event is due soon; here it waits until the circuit has closed, or for long. */
  #delayOf({ isSetAside }: KeptHold, delayMs: number): number {
    const { destination, timing } = this.#parts.context;
    return isSetAside && destination.isOpen ? SET_ASIDE_PROBES * timing.circuitMaxMs : delayMs;
  }
}
