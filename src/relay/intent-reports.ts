import type { Failed } from "../core/outcome.ts";
import type { PipelineContext } from "./context.ts";
import type { Attempt } from "./dispatcher.ts";
import type { Entry } from "./lane-queue.ts";

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

  failed(
    entry: Entry,
    outcome: Exclude<Failed, { kind: "skipped" }>,
    attempt: Attempt,
    number: number,
    retryInMs: number | null,
  ): void {
    const { events } = this.#context;
    if (!events.wants("IntentRelayFailed")) return;
    const { reason, scope } = outcome;
    const { durationMs } = attempt;
    events.emit("IntentRelayFailed", { ...this.#about(entry), durationMs, attempt: number, reason, scope, retryInMs });
  }

  deadLettered(entry: Entry, attempt: number, reason: string, parks: boolean): void {
    this.#context.events.emit("IntentDeadLettered", { ...this.#about(entry), attempt, reason, parks });
  }

  #about(entry: Entry) {
    const { id, type, key, correlationId } = entry.event;
    const target = entry.message?.topic ?? this.#context.destination.name;
    return { pipeline: this.#context.name, recordId: id, intentType: type, target, key, correlationId };
  }
}
