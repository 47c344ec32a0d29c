import type { Clock } from "../core/clock.ts";
import { codeOf, reasonOf, stackOf } from "../core/errors.ts";
import { errorTypeOf, type Failed } from "../core/outcome.ts";
import type { IntentRecord } from "../dynamodb/intent-record.ts";
import type { TechnicalEvent, TechnicalEventMap, TechnicalEventName } from "../ports/technical-events.ts";
import { redactor } from "../telemetry/logs/redaction.ts";

/** Receives technical events. */
export type ReportEvent = (event: TechnicalEvent) => void | Promise<void>;

interface ReportsOptions {
  /** The intent type of this function. */
  readonly intentType: string;
  readonly pipeline: string;
  /** The target to report for an intent that has no message. */
  readonly target: string;
  readonly clock: Clock;
  readonly secrets: readonly string[];
  readonly report: ReportEvent | undefined;
  /** Default: standard output, which CloudWatch reads. */
  readonly metricLine?: ((line: string) => void) | undefined;
}

/** A failure that counts as an attempt. */
export type EventFailure = Exclude<Failed, { kind: "skipped" }>;

/** One attempt to deliver an intent. */
export interface Attempt {
  readonly topic: string | null;
  readonly durationMs: number;
}

/** Reports the outcomes of intents: technical events, and CloudWatch's dead-letter metric. */
export class IntentReports {
  readonly #options: ReportsOptions;
  readonly #report: ReportEvent;
  readonly #pending = new Set<Promise<void>>();

  constructor(options: ReportsOptions) {
    const clean = redactor(options.secrets);
    this.#options = options;
    this.#report = options.report ?? ((event) => console.log(clean(lineOf(event))));
  }

  relayed(record: IntentRecord, { durationMs, topic }: Attempt): void {
    this.#emit("IntentRelayed", { ...this.#about(record, topic), durationMs, attempt: record.attemptCount + 1 });
  }

  failed(record: IntentRecord, { durationMs, topic }: Attempt, failed: EventFailure, retryInMs: number | null): void {
    const { error, reason, scope } = failed;
    const failure = { reason, scope, errorType: errorTypeOf(failed), stack: stackOf(error), retryInMs };
    const attempt = record.attemptCount + 1;
    this.#emit("IntentRelayFailed", { ...this.#about(record, topic), durationMs, attempt, ...failure });
  }

  deadLettered(record: IntentRecord, topic: string | null, reason: string): void {
    const attempt = record.attemptCount + 1;
    const lastFailedAt = new Date(this.#options.clock.wallMs()).toISOString();
    const errors = [...record.errors, { at: lastFailedAt, attempt, reason }];
    const firstFailedAt = errors[0]!.at;
    const history = { firstFailedAt, lastFailedAt, errors };
    this.#emit("IntentDeadLettered", { ...this.#about(record, topic), attempt, reason, parks: false, ...history });
    this.countDeadLetters(1);
  }

  /** Nothing was sent: the record belongs to another relay or is not an intent. */
  mismatch(intentType: string, recordId: string | null): void {
    this.#emit("RelayMismatch", { pipeline: this.#options.pipeline, intentType, count: 1, recordId });
  }

  vanished({ id }: IntentRecord): void {
    this.#emit("EventVanished", { pipeline: this.#options.pipeline, recordId: id });
  }

  /** The outcomes of intents could not be recorded; AWS delivers them again. */
  unsettled(error: unknown): void {
    const reason = reasonOf(error);
    const code = codeOf(error, reason) ?? "DATABASE_REFUSED";
    const stack = stackOf(error);
    this.#emit("SettleDelayed", { pipeline: this.#options.pipeline, lane: 0, code, tries: 1, reason, stack });
  }

  /** CloudWatch turns a line of this form into a metric, so it is always written, also with a custom `report`. */
  countDeadLetters(count: number): void {
    const { clock, intentType } = this.#options;
    const metric = {
      Namespace: "OutboxRelay",
      Dimensions: [["intentType"]],
      Metrics: [{ Name: "DeadLetters", Unit: "Count" }],
    };
    const _aws = { Timestamp: Math.round(clock.wallMs()), CloudWatchMetrics: [metric] };
    const line = JSON.stringify({ _aws, intentType, DeadLetters: count });
    if (this.#options.metricLine === undefined) console.log(line);
    else this.#options.metricLine(line);
  }

  /** Waits for asynchronous reports: AWS freezes the function after its response. */
  async flush(): Promise<void> {
    await Promise.all(this.#pending);
  }

  #about({ correlationId, id, key, type }: IntentRecord, topic: string | null) {
    const { pipeline, target } = this.#options;
    return { pipeline, recordId: id, intentType: type, target: topic ?? target, key, correlationId };
  }

  /** A listener that fails never affects the delivery. */
  #emit<Name extends TechnicalEventName>(name: Name, event: TechnicalEventMap[Name]): void {
    const technicalEvent = { name, timestamp: this.#options.clock.wallMs(), ...event } as unknown as TechnicalEvent;
    const reporting = (async () => this.#report(technicalEvent))().catch((error: unknown) => {
      console.error(JSON.stringify({ event: "ReportFailed", reason: reasonOf(error) }));
    });
    this.#pending.add(reporting);
    void reporting.finally(() => this.#pending.delete(reporting));
  }
}

function lineOf({ name, timestamp, ...rest }: TechnicalEvent): string {
  return JSON.stringify({ timestamp: new Date(timestamp).toISOString(), event: name, ...rest });
}
