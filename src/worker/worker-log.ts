import type { LoggedEvent } from "../ports/event-log.ts";

/** What happened to a job, or to the worker itself. */
/** What became of a request. */
export type WorkerLogOutcome =
  | "started"
  | "completed"
  | "failed"
  /** Nothing was executed: the outcome is already recorded, or the domain ended the request. */
  | "skipped"
  /** Nothing was recorded: the job is delivered again. */
  | "delayed"
  /** The request was executed and its outcome cannot be recorded yet. */
  | "waiting"
  /** The job is in BullMQ's failed set: an operator must act. */
  | "broken"
  /** An error of the worker's connections, not of a job. */
  | "trouble";

/** One log line. Every line has all of these fields; unknown values are null. */
export interface WorkerLogLine {
  readonly level: "info" | "warn" | "error";
  readonly namespace: string;
  readonly tenant: string | null;
  /** The event that requested the job. */
  readonly eventId: string | null;
  readonly requestId: string | null;
  readonly jobId: string | null;
  readonly stream: string | null;
  readonly outcome: WorkerLogOutcome;
  readonly correlationId: string | null;
  readonly causationId: string | null;
  readonly source: string | null;
  readonly attempt: number | null;
  /** The event that records the outcome. */
  readonly outcomeId: string | null;
  /** Why, when the outcome alone does not say. */
  readonly reason: string | null;
  readonly durationMs: number | null;
}

/** One measurement. */
export interface WorkerSample {
  /** Jobs by outcome, the time that `execute` took, and the time from the asking event to its outcome. */
  readonly name: "outbox_requests_total" | "outbox_request_duration_ms" | "outbox_request_lag_ms";
  readonly value: number;
  readonly labels: { readonly namespace: string; readonly outcome: string };
}

type Subject = Omit<WorkerLogLine, "level" | "outcome" | "reason" | "durationMs" | "outcomeId">;
type Detail = Partial<Pick<WorkerLogLine, "reason" | "durationMs" | "outcomeId">>;

const WARNINGS: ReadonlySet<WorkerLogOutcome> = new Set(["failed", "delayed", "waiting"]);
const ERRORS: ReadonlySet<WorkerLogOutcome> = new Set(["broken", "trouble"]);

/** Logs one job and adds its ids as they become known. A listener that throws has no effect on the job. */
export class JobLogger {
  readonly #onLog: (line: WorkerLogLine) => void;
  #subject: Subject;

  constructor(onLog: (line: WorkerLogLine) => void, known: Partial<Subject> & { readonly namespace: string }) {
    this.#onLog = onLog;
    const unknown = { tenant: null, eventId: null, requestId: null, jobId: null, stream: null, attempt: null };
    this.#subject = { ...unknown, correlationId: null, causationId: null, source: null, ...known };
  }

  /** Adds the asking event's metadata to all later lines. */
  learn({ id, metadata }: LoggedEvent, attempt: number): void {
    const { causationId, correlationId, source } = metadata ?? {};
    this.#subject = {
      ...this.#subject,
      ...{ eventId: id, attempt },
      ...{ correlationId: textOf(correlationId), causationId: textOf(causationId), source: textOf(source) },
    };
  }

  log(outcome: WorkerLogOutcome, detail: Detail = {}): void {
    const line = { ...this.#subject, reason: null, durationMs: null, outcomeId: null, ...detail };
    quietly(() => this.#onLog({ level: levelOf(outcome), outcome, ...line }));
  }
}

function levelOf(outcome: WorkerLogOutcome): WorkerLogLine["level"] {
  if (ERRORS.has(outcome)) return "error";
  return WARNINGS.has(outcome) ? "warn" : "info";
}

/** Calls a listener and ignores its errors. */
export function quietly(listener: () => void): void {
  try {
    listener();
  } catch {}
}

const textOf = (value: unknown) => (typeof value === "string" ? value : null);
