import { codeOf, stackOf } from "../core/errors.ts";
import { errorTypeOf, type Failed } from "../core/outcome.ts";
import type { RecordedAttempt } from "../ports/attempt-recorder.ts";
import type { DeadLetterNote, Failure } from "../ports/queue-store.ts";
import type { AboutEvent } from "../ports/technical-events.ts";
import type { PipelineContext } from "./context.ts";
import type { Attempt } from "./dispatcher.ts";
import type { Entry } from "./lane-queue.ts";

type EventFailure = Exclude<Failed, { kind: "skipped" }>;

/** What follows a failure: a retry after this time, a retry when a circuit allows it (null), or none. */
interface AfterFailure {
  readonly retryInMs: number | null;
  readonly isDead: boolean;
}

/** Reports the outcomes of single events to listeners and to the recorder. It costs next to nothing without them. */
export class IntentReports {
  readonly #context: PipelineContext;

  constructor(context: PipelineContext) {
    this.#context = context;
  }

  /** The events were delivered; `numberOf` counts the attempts of each. */
  relayed(entries: readonly Entry[], attempt: Attempt, numberOf: (entry: Entry) => number): void {
    const { events, recorder } = this.#context;
    const isWanted = events.wants("IntentRelayed");
    if (recorder === undefined && !isWanted) return;
    for (const entry of entries) {
      const number = numberOf(entry);
      if (recorder?.takesDelivered(attempt.startedMs ?? 0)) {
        recorder.record({ ...this.#sent(entry, attempt, number), outcome: "delivered", reason: null, errorType: null });
      }
      if (!isWanted) continue;
      events.emit("IntentRelayed", { ...this.#about(entry), durationMs: attempt.durationMs, attempt: number });
    }
  }

  /** The event failed. */
  failed(entry: Entry, outcome: EventFailure, attempt: Attempt, number: number, after: AfterFailure): void {
    const { events } = this.#context;
    const { retryInMs, isDead } = after;
    this.recordFailed(entry, outcome, attempt, number, isDead);
    if (!events.wants("IntentRelayFailed")) return;
    const { reason, scope } = outcome;
    const { durationMs } = attempt;
    const errorType = errorTypeFor(entry, outcome);
    const report = { durationMs, attempt: number, reason, scope, errorType, stack: stackOf(outcome.error), retryInMs };
    events.emit("IntentRelayFailed", { ...this.#about(entry), ...report });
  }

  /** Records a failed attempt without a technical event: for failures that say nothing about the event itself. */
  recordFailed(entry: Entry, outcome: EventFailure, attempt: Attempt, number: number, isDead = false): void {
    this.#context.recorder?.record({
      ...this.#sent(entry, attempt, number),
      outcome: isDead ? "dead" : "failed",
      reason: outcome.reason,
      errorType: errorTypeFor(entry, outcome),
    });
  }

  /** A crash poison becomes a dead letter without a claim: then only the source's note describes the event. */
  deadLettered({ id, key, attempts: attempt, reason }: Failure, parks: boolean, known: Known): void {
    const { events, name, destination } = this.#context;
    const { entry, note } = known;
    if (entry === undefined && note === undefined) return;
    const noted = {
      pipeline: name,
      recordId: id,
      intentType: note?.type ?? "",
      target: destination.name,
      key,
      correlationId: note?.correlationId ?? null,
    };
    const { firstFailedAt = null, lastFailedAt = null, errors = [] } = note ?? {};
    const about = entry === undefined ? noted : this.#about(entry);
    if (entry === undefined) this.#recordUnsent(noted, attempt, reason);
    events.emit("IntentDeadLettered", { ...about, attempt, reason, parks, firstFailedAt, lastFailedAt, errors });
  }

  /** Records a dead letter that was not sent. For an event that was sent, its last attempt is recorded already. */
  #recordUnsent(noted: AboutEvent, attempt: number, reason: string): void {
    const { clock, recorder } = this.#context;
    recorder?.record({
      ...attemptAt(clock.wallMs(), noted, attempt),
      outcome: "dead",
      reason,
      errorType: codeOf(null, reason),
    });
  }

  #sent(entry: Entry, attempt: Attempt, number: number): Omit<RecordedAttempt, "outcome" | "reason" | "errorType"> {
    const { clock } = this.#context;
    const [wallMs, nowMs] = [clock.wallMs(), clock.monotonicMs()];
    const { startedMs } = attempt;
    const isSent = startedMs !== null;
    return {
      ...attemptAt(wallMs, this.#about(entry), number),
      writtenAt: entry.event.createdAt,
      claimedAtMs: wallMs - (nowMs - entry.claimedMs),
      sentAtMs: isSent ? wallMs - (nowMs - startedMs) : null,
      durationMs: isSent ? nowMs - startedMs : null,
      headers: isSent ? (entry.message?.headers ?? null) : null,
    };
  }

  #about(entry: Entry): AboutEvent {
    const { id, type, key, correlationId } = entry.event;
    const target = entry.message?.topic ?? this.#context.destination.name;
    return { pipeline: this.#context.name, recordId: id, intentType: type, target, key, correlationId };
  }
}

/** An attempt with nothing but its number and its event: everything else is unknown. */
function attemptAt(atMs: number, about: AboutEvent, attempt: number) {
  const { correlationId, intentType: eventType, key: eventKey, pipeline, recordId: eventId, target } = about;
  const unknown = { writtenAt: null, claimedAtMs: null, sentAtMs: null, durationMs: null, headers: null };
  return { atMs, pipeline, eventId, eventType, eventKey, correlationId, attempt, target, ...unknown };
}

function errorTypeFor(entry: Entry, outcome: EventFailure): string {
  return entry.event.fault?.code ?? errorTypeOf(outcome);
}

/** What is known about a dead event: its entry in memory and the source's note. */
interface Known {
  readonly entry: Entry | undefined;
  readonly note: DeadLetterNote | undefined;
}
