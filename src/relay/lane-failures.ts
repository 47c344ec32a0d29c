import { backoffMs } from "../core/backoff.ts";
import type { Suspect } from "../core/blame.ts";
import type { Failed } from "../core/outcome.ts";
import { sharedReason } from "../core/shared-reason.ts";
import type { DeadLetterNote, Failure } from "../ports/queue-store.ts";
import type { PipelineContext } from "./context.ts";
import type { Attempt } from "./dispatcher.ts";
import { nextAfterFailure } from "./failure-rule.ts";
import type { IntentReports } from "./intent-reports.ts";
import type { CircuitScope, KeptHold, LaneHolds } from "./lane-holds.ts";
import type { Entry, FailedEntry, LaneQueue } from "./lane-queue.ts";
import type { Settler } from "./settler.ts";
import { policyFor } from "./translation.ts";

/** After this many unanswered sends in a row, an event is set aside for others. */
const UNANSWERED_MAX = 2;
/** A circuit decides when the event is retried. */
const BY_CIRCUIT = { retryInMs: null, isDead: false };

type EventFailure = Exclude<Failed, { kind: "skipped" }>;
type Retry = Extract<Failed, { kind: "retry" }>;

interface LaneParts {
  readonly context: PipelineContext;
  readonly queue: LaneQueue;
  readonly holds: LaneHolds;
  readonly reports: IntentReports;
  readonly settler: Settler;
  /** Hands claimed events back that are not sent after all. */
  readonly handBack: (entries: readonly Entry[]) => void;
}

/** Decides what a failure means for its lane: a hold, an open circuit, or another send. */
export class LaneFailures {
  readonly #parts: LaneParts;

  constructor(parts: LaneParts) {
    this.#parts = parts;
  }

  /**
   * All failures of one key's events in a publish, in order. In a transaction one event can fail those before it as
   * well. The lane then sends the earlier ones again, and that event alone after them: a hold must always be of the
   * key's first event, or later events would overtake it.
   */
  failed(failures: readonly FailedEntry[], attempt: Attempt): void {
    const culprit = failures.findIndex(({ outcome }) => outcome.kind !== "skipped");
    const { entry, outcome } = failures[Math.max(0, culprit)]!;
    const entries = failures.map((failure) => failure.entry);
    if (culprit > 0 && outcome.kind !== "skipped" && outcome.scope !== "destination") {
      entry.isIsolated = true;
      this.#sendAgain(entries, attempt);
      return;
    }
    if (outcome.kind === "skipped") this.#sendAgain(entries, attempt);
    else if (outcome.scope === "event") this.#eventFailed(entry, entries.slice(1), outcome, attempt);
    else this.#sharedFailure(entries, outcome, attempt);
  }

  /** The failure is durable: its hold gets its due time. */
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

  /** Makes an event that ended the process each time it was sent a dead letter, without another send. */
  deadLetter(poison: Failure): void {
    const { holds, settler } = this.#parts;
    const { id, key, attempts } = poison;
    const crashes = holds.get(id)?.crashes ?? 0;
    const fresh = { dueAtMs: 0, unansweredSinceMs: null, waitsFor: null };
    holds.put({ id, key, dead: true, parks: true, attempts, crashes, ...fresh });
    settler.failed(poison);
  }

  /** The failures of the event so far. */
  attemptsOf(entry: Entry): number {
    return Math.max(entry.event.failures, this.#parts.holds.get(entry.event.id)?.attempts ?? 0);
  }

  /**
   * Puts events without an outcome back to the front. They prove nothing about the destination, so another probe may
   * go.
   */
  #sendAgain(entries: readonly Entry[], attempt: Attempt): void {
    const { context, queue } = this.#parts;
    queue.putBack(entries);
    if (attempt.probe) context.destination.cancelProbe();
  }

  /**
   * The answer names the topic or the destination, but only this event may be at fault. So the event is never the probe
   * twice in a row while others could be, and once others are delivered its failures count against it.
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
    entry.isIsolated ||= destination.shouldIsolate(this.#suspect(entry));
    if (!isProbe && blame === "event" && !isOutside(outcome)) {
      this.#eventFailed(entry, followers, outcome, { ...attempt, probe: false });
      return;
    }
    for (const failed of topic === null ? entries : [entry]) {
      reports.failed(failed, outcome, attempt, this.attemptsOf(failed) + 1, BY_CIRCUIT);
    }
    if (isProbe || blame === "everyone") this.#closeTo(topic, entries, outcome, { attempt, isProbe });
    else this.#waitAlone(entry, followers, outcome);
    // An answer that names a topic proves that the destination as a whole is back.
    if (topic !== null && attempt.probe) destination.answered(attempt.probe);
  }

  /**
   * The failure opens a circuit, or keeps it open. The events wait for it: in memory, as holds, or back in the source.
   */
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
    const reason = sharedReason(outcome.commonReason ?? outcome.reason, event);
    if (topic !== null && !destination.topicFailed(topic, event.type, reason, how)) {
      this.#waitAlone(entry, followers, outcome);
      return;
    }
    // Where no event can be at fault, every event is as good a probe as any other.
    const makesRoom = (isProbe && !isOutside(outcome)) || entry.unansweredSends >= UNANSWERED_MAX;
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

  /** It is unknown what is at fault: the event is held so that others probe, and spends no attempt. */
  #setAside(entry: Entry, followers: readonly Entry[], reason: string, waitsFor: CircuitScope): void {
    const delayMs = this.#parts.context.timing.circuitInitialMs;
    const failure = { attempts: this.attemptsOf(entry), reason, next: { kind: "retry", delayMs } } as const;
    this.#hold(entry, followers, failure, waitsFor);
  }

  /** Others are delivered: the event is held and retried without blocking them, and spends no attempt yet. */
  #waitAlone(entry: Entry, followers: readonly Entry[], outcome: EventFailure): void {
    const { destination, timing } = this.#parts.context;
    const { circuitInitialMs, circuitMaxMs } = timing;
    const failures = destination.unsharedFailures(this.#suspect(entry));
    const pauseMs = backoffMs({ firstMs: circuitInitialMs, lastMs: circuitMaxMs }, failures);
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
    const reason = sharedReason(outcome.commonReason ?? outcome.reason, entry.event);
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
    waitsFor: CircuitScope | null = null,
  ): void {
    const { handBack, holds, queue, settler } = this.#parts;
    const { id, key } = entry.event;
    const { attempts, next } = failure;
    const crashes = holds.get(id)?.crashes ?? 0;
    const { bytes, unansweredSinceMs } = entry;
    // Until the hold is written, the event is not due and its key is parked: memory must never be ahead of the source,
    // or after a crash a later event of the key could be delivered first.
    const dueAtMs = Number.POSITIVE_INFINITY;
    const dead = next.kind === "dead";
    holds.put({ id, key, dead, parks: true, attempts, crashes, dueAtMs, unansweredSinceMs, waitsFor, bytes });
    handBack([...followers, ...(key === null ? [] : queue.dropKey(key))]);
    settler.failed({ id, key, ...failure });
  }

  /**
   * In the database a set-aside event is due soon, so that another owner retries it. In memory it is due a little after
   * the next probe: new events go first, then events that were set aside earlier.
   */
  #delayOf({ waitsFor }: KeptHold, delayMs: number): number {
    const { destination, timing } = this.#parts.context;
    if (waitsFor === null || !destination.isClosedTo(waitsFor.topic)) return delayMs;
    return destination.untilProbeMs(waitsFor.topic) + 2 * timing.pollIntervalMs;
  }
}

/** True when no event can be at fault: nothing was sent, or part of the destination is down. */
function isOutside(outcome: EventFailure): boolean {
  return outcome.kind === "retry" && outcome.isOutside === true;
}
