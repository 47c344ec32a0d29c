/** Why a call failed. */
export interface RelayApiErrorFacts {
  readonly operation: string;
  readonly status: number;
  readonly code: string;
  readonly fix: string | null;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
}

/** A call that failed. Its message says what happened and what to do. */
export class RelayApiError extends Error {
  /** The id of the operation. */
  readonly operation: string;
  /** The HTTP status; 0 when the service did not answer. */
  readonly status: number;
  /** Stable; for programs. `SERVICE_UNREACHABLE` and `SERVICE_TIMEOUT` when the service did not answer. */
  readonly code: string;
  /** What to do; null where the service says nothing about it. */
  readonly fix: string | null;
  /** How long the service asks to wait before the next try. */
  readonly retryAfterMs: number | null;

  constructor(what: string, { cause, code, fix, operation, retryAfterMs = null, status }: RelayApiErrorFacts) {
    super(
      `${operation}: ${sentence(what)} [${code}]${fix === null ? "" : ` ${fix}`}`,
      cause === undefined ? {} : { cause },
    );
    this.name = "RelayApiError";
    this.operation = operation;
    this.status = status;
    this.code = code;
    this.fix = fix;
    this.retryAfterMs = retryAfterMs;
  }

  /** The same call may succeed later. After a status of 0 it is unknown whether a change took effect. */
  get isRetryable(): boolean {
    return (
      this.status === 0 || this.status === 429 || this.status === 502 || this.status === 503 || this.status === 504
    );
  }
}

function sentence(text: string): string {
  return /[.?!]$/.test(text) ? text : `${text}.`;
}
