import { stackOf } from "../core/errors.ts";
import { errorTypeOf, type Failed } from "../core/outcome.ts";
import type { DeadLetterNote, Failure } from "../ports/queue-store.ts";
import type { PipelineContext } from "./context.ts";
import type { Attempt } from "./dispatcher.ts";
import type { Entry } from "./lane-queue.ts";

type EventFailure = Exclude<Failed, { kind: "skipped" }>;

/** Tells the world about single events, and costs nothing when nobody listens. */
export class IntentReports {
  readonly #context: PipelineContext;

  constructor(context: PipelineContext) {
    this.#context = context;
  }

  relayed(entry: Entry, attempt: Attempt, number: number): void {
    const { events } = this.#context;
    if (!events.wants("IntentRelayed")) return;
    events.emit("IntentRelayed", { ...this.#about(entry), durationMs: attempt.durationMs, attempt: number });
  }

  failed(entry: Entry, outcome: EventFailure, attempt: Attempt, number: number, retryInMs: number | null): void {
    const { events } = this.#context;
    if (!events.wants("IntentRelayFailed")) return;
    const { reason, scope } = outcome;
    const { durationMs } = attempt;
    const errorType = entry.event.fault?.code ?? errorTypeOf(outcome);
    const told = { durationMs, attempt: number, reason, scope, errorType, stack: stackOf(outcome.error), retryInMs };
    events.emit("IntentRelayFailed", { ...this.#about(entry), ...told });
  }

  /** What ended the process each time is buried without being claimed: only the source's note tells of it then. */
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
    events.emit("IntentDeadLettered", { ...about, attempt, reason, parks, firstFailedAt, lastFailedAt, errors });
  }

  #about(entry: Entry) {
    const { id, type, key, correlationId } = entry.event;
    const target = entry.message?.topic ?? this.#context.destination.name;
    return { pipeline: this.#context.name, recordId: id, intentType: type, target, key, correlationId };
  }
}

/** What is known of a dead event: in memory, and by the source. */
interface Known {
  readonly entry: Entry | undefined;
  readonly note: DeadLetterNote | undefined;
}
