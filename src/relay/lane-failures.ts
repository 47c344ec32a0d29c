import type { Suspect } from "../core/blame.ts";
import type { Failed } from "../core/outcome.ts";
import { sharedReason } from "../core/shared-reason.ts";
import type { DeadLetterNote, Failure } from "../ports/queue-store.ts";
import type { PipelineContext } from "./context.ts";
import type { Attempt } from "./dispatcher.ts";
import { nextAfterFailure } from "./failure-rule.ts";
import type { Circle, HoldBook, KeptHold } from "./hold-book.ts";
import type { IntentReports } from "./intent-reports.ts";
import type { Entry, FailedEntry, LaneQueue } from "./lane-queue.ts";
import type { Settler } from "./settler.ts";
import { policyFor } from "./translation.ts";

/** So often an event may go without an answer in a row before it makes room for others. */
const SILENCES_MAX = 2;
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
    else this.#sharedFailure(entries, outcome, attempt);
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

  /** An event that ended the process each time it was sent: it is not sent again. */
  bury(poison: Failure): void {
    const { holds, settler } = this.#parts;
    const { id, key, attempts } = poison;
    const crashes = holds.get(id)?.crashes ?? 0;
    const fresh = { dueAtMs: 0, silentSinceMs: null, waitsFor: null };
    holds.put({ id, key, dead: true, parks: true, attempts, crashes, ...fresh });
    settler.failed(poison);
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

  /**
   * The answer names the topic or the destination. It may be meant for this event alone all the same: so it never
   * probes twice in a row while others could, and once others get through it fails on its own account.
   */
  #sharedFailure(entries: readonly Entry[], outcome: EventFailure, attempt: Attempt): void {
    const { context, reports } = this.#parts;
    const { destination } = context;
    const [entry, ...followers] = entries as [Entry, ...Entry[]];
    const topic = outcome.scope === "topic" ? entry.message!.topic : null;
    const wasProbe = topic === null ? attempt.probe : entry.topicProbe;
    const isProbe = wasProbe && destination.isClosedTo(topic);
    const blame = destination.blameFor(this.#suspect(entry), topic);
    entry.hasFailed = true;
    entry.isAlone ||= destination.goesAlone(this.#suspect(entry));
    if (!isProbe && blame === "event" && !isOutside(outcome)) {
      this.#eventFailed(entry, followers, outcome, { ...attempt, probe: false });
      return;
    }
    for (const told of topic === null ? entries : [entry]) {
      reports.failed(told, outcome, attempt, this.attemptsOf(told) + 1, BY_CIRCUIT);
    }
    if (isProbe || blame === "everyone") this.#closeTo(topic, entries, outcome, { attempt, isProbe });
    else this.#waitAlone(entry, followers, outcome);
    // Who names the topic answers: whatever was wrong with the destination as a whole is over.
    if (topic !== null && attempt.probe) destination.answered(attempt.probe);
  }

  #closeTo(
    topic: string | null,
    entries: readonly Entry[],
    outcome: EventFailure,
    { attempt, isProbe }: { attempt: Attempt; isProbe: boolean },
  ): void {
    const { context, handBack, queue } = this.#parts;
    const { destination } = context;
    const [entry, ...followers] = entries as [Entry, ...Entry[]];
    const { event } = entry;
    const how = { probe: isProbe, afterMs: (outcome as Retry).afterMs, error: outcome.error };
    const reason = sharedReason(outcome.reason, event);
    if (topic !== null && !destination.topicFailed(topic, event.type, reason, how)) {
      this.#waitAlone(entry, followers, outcome);
      return;
    }
    // Where no event can be at fault, each makes as good a probe as any other.
    const makesRoom = (isProbe && !isOutside(outcome)) || entry.silences >= SILENCES_MAX;
    if (makesRoom) this.#setAside(entry, followers, outcome.reason, { topic });
    else if (topic === null) queue.putBack(entries);
    if (topic === null) {
      destination.failed(reason, { ...how, probe: attempt.probe && isProbe });
      return;
    }
    const waiting = makesRoom ? [] : [...entries, ...(event.key === null ? [] : queue.dropKey(event.key))];
    const others = queue.dropLinesWith(({ message }) => message?.topic === topic);
    handBack([...waiting, ...others]);
  }

  /** Nobody knows whose fault it is: the event makes room for others to find out, and no attempt is spent. */
  #setAside(entry: Entry, followers: readonly Entry[], reason: string, waitsFor: Circle): void {
    const delayMs = this.#parts.context.timing.circuitInitialMs;
    const failure = { attempts: this.attemptsOf(entry), reason, next: { kind: "retry", delayMs } } as const;
    this.#hold(entry, followers, failure, waitsFor);
  }

  /** Others got through: it is tried again without them waiting for it, and no attempt is spent yet. */
  #waitAlone(entry: Entry, followers: readonly Entry[], outcome: EventFailure): void {
    const { destination, timing } = this.#parts.context;
    const { circuitInitialMs, circuitMaxMs } = timing;
    const failures = destination.lonelyFailures(this.#suspect(entry));
    const pauseMs = Math.min(circuitMaxMs, circuitInitialMs * 2 ** failures);
    const delayMs = Math.max(pauseMs, (outcome as Retry).afterMs ?? 0);
    const { reason } = outcome;
    this.#hold(entry, followers, { attempts: this.attemptsOf(entry), reason, next: { kind: "retry", delayMs } });
  }

  #suspect({ event }: Entry): Suspect {
    return { pipeline: this.#parts.context.name, id: event.id };
  }

  #eventFailed(entry: Entry, followers: readonly Entry[], outcome: EventFailure, attempt: Attempt): void {
    const { context, reports } = this.#parts;
    const { destination, random } = context;
    const reason = sharedReason(outcome.reason, entry.event);
    const counts = entry.fault !== null || destination.eventFailed(entry.event.id, reason, attempt.probe);
    if (!counts) {
      reports.recordFailed(entry, outcome, attempt, this.attemptsOf(entry) + 1);
      this.#setAside(entry, followers, outcome.reason, { topic: null });
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
    waitsFor: Circle | null = null,
  ): void {
    const { handBack, holds, queue, settler } = this.#parts;
    const { id, key } = entry.event;
    const { attempts, next } = failure;
    const crashes = holds.get(id)?.crashes ?? 0;
    const { silentSinceMs } = entry;
    // Not due, and nothing of its key may pass, before it is written: a hold must never be ahead of its row.
    const dueAtMs = Number.POSITIVE_INFINITY;
    const dead = next.kind === "dead";
    holds.put({ id, key, dead, parks: true, attempts, crashes, dueAtMs, silentSinceMs, waitsFor });
    handBack([...followers, ...(key === null ? [] : queue.dropKey(key))]);
    settler.failed({ id, key, ...failure });
  }

  /**
   * In the database a set-aside event is due soon; here not before the next probe, and a little later: new events go
   * first, then those that were set aside before.
   */
  #delayOf({ waitsFor }: KeptHold, delayMs: number): number {
    const { destination, timing } = this.#parts.context;
    if (waitsFor === null || !destination.isClosedTo(waitsFor.topic)) return delayMs;
    return destination.untilProbeMs(waitsFor.topic) + 2 * timing.pollIntervalMs;
  }
}

/** It is certain that no event is at fault: nothing was sent, or a part of the destination is down. */
function isOutside(outcome: EventFailure): boolean {
  return outcome.kind === "retry" && outcome.isOutside === true;
}
