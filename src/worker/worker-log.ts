import type { LoggedEvent } from "../ports/event-log.ts";

/** What a line is about: what happened to the job, or to the worker itself. */
type WorkerLogOutcome =
  | "started"
  | "completed"
  | "failed"
  /** Nothing was executed: it was done before, or nobody wants it any more. */
  | "skipped"
  /** Nothing was recorded: the job comes again by itself. */
  | "delayed"
  /** It has happened and cannot be recorded yet. */
  | "waiting"
  /** The job is in BullMQ's failed set: a person has to look. */
  | "broken"
  /** Of the worker, not of a job. */
  | "trouble";

/** Every line has all of these; what is not known is null. */
export interface WorkerLogLine {
  readonly level: "info" | "warn" | "error";
  readonly namespace: string;
  readonly tenant: string | null;
  /** The event that asked for the job. */
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
  /** Why, when it is not plain. */
  readonly reason: string | null;
  readonly durationMs: number | null;
}

export interface WorkerSample {
  /** Jobs by outcome, the time that `execute` took, and the time from the asking event to its outcome. */
  readonly name: "outbox_requests_total" | "outbox_request_duration_ms" | "outbox_request_lag_ms";
  readonly value: number;
  readonly labels: { readonly namespace: string; readonly outcome: string };
}

type Subject = Omit<WorkerLogLine, "level" | "outcome" | "reason" | "durationMs" | "outcomeId">;
type Detail = Partial<Pick<WorkerLogLine, "reason" | "durationMs" | "outcomeId">>;

const LEVELS: Readonly<Record<WorkerLogOutcome, WorkerLogLine["level"]>> = {
  started: "info",
  completed: "info",
  skipped: "info",
  failed: "warn",
  delayed: "warn",
  waiting: "warn",
  broken: "error",
  trouble: "error",
};

/** Tells of one job, with more of its ids as they become known. A listener that throws disturbs nothing. */
export class JobTeller {
  readonly #onLog: (line: WorkerLogLine) => void;
  #subject: Subject;

  constructor(onLog: (line: WorkerLogLine) => void, known: Partial<Subject> & { readonly namespace: string }) {
    this.#onLog = onLog;
    const unknown = { tenant: null, eventId: null, requestId: null, jobId: null, stream: null, attempt: null };
    this.#subject = { ...unknown, correlationId: null, causationId: null, source: null, ...known };
  }

  /** What the asking event says of itself stands in every line from now on. */
  learn({ id, metadata }: LoggedEvent, attempt: number): void {
    const { causationId, correlationId, source } = metadata ?? {};
    this.#subject = {
      ...this.#subject,
      ...{ eventId: id, attempt },
      ...{ correlationId: textOf(correlationId), causationId: textOf(causationId), source: textOf(source) },
    };
  }

  tell(outcome: WorkerLogOutcome, detail: Detail = {}): void {
    const line = { ...this.#subject, reason: null, durationMs: null, outcomeId: null, ...detail };
    quietly(() => this.#onLog({ level: LEVELS[outcome], outcome, ...line }));
  }
}

export function quietly(listener: () => void): void {
  try {
    listener();
  } catch {}
}

const textOf = (value: unknown) => (typeof value === "string" ? value : null);
