import { reasonOf } from "../core/errors.ts";
import { retryAfterMs } from "../core/retry-policy.ts";

/** Thrown by `execute`: retry; with a schedule, not before `afterMs` have passed. */
export class RetryLater extends Error {
  readonly retryAfterMs: number;

  constructor(reason: string, afterMs: number, options?: ErrorOptions) {
    super(reason, options);
    this.name = "RetryLater";
    this.retryAfterMs = afterMs;
  }
}

/** Thrown by `execute`: do not retry. */
export class FinalFailure extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = "FinalFailure";
  }
}

/** A failure of `resolve` or `execute`. */
export interface Failure {
  readonly reason: string;
  /** The delay that the provider requested; null if it did not. */
  readonly afterMs: number | null;
  readonly isFinal: boolean;
}

/** The reason is stored in the log for good. */
const REASON_LENGTH_MAX = 500;

/** Reads any value that `resolve` or `execute` throws. An HTTP response may be thrown as it is. */
export function failureOf(thrown: unknown, wallMs: number, retryAfterMsMax: number): Failure {
  return {
    reason: reasonIn(thrown),
    afterMs: waitIn(thrown, wallMs, retryAfterMsMax),
    isFinal: thrown instanceof FinalFailure,
  };
}

function reasonIn(thrown: unknown): string {
  if (thrown instanceof Error || typeof thrown !== "object") return reasonOf(thrown, REASON_LENGTH_MAX);
  const status = fieldOf(thrown, "status");
  return typeof status === "number" ? `answered ${status}` : "a value that is not an Error was thrown";
}

/** Reads the delay from the error, from the response it carries, or from its cause. */
function waitIn(thrown: unknown, wallMs: number, maxMs: number): number | null {
  for (const holder of [thrown, fieldOf(thrown, "response"), fieldOf(thrown, "cause")]) {
    const ms = fieldOf(holder, "retryAfterMs");
    if (typeof ms === "number" && !Number.isNaN(ms)) return Math.min(Math.max(0, ms), maxMs);
    const written = headerIn(fieldOf(holder, "headers"), "retry-after");
    const afterMs = retryAfterMs(written, wallMs, maxMs);
    if (afterMs !== null) return afterMs;
  }
  return null;
}

function headerIn(headers: unknown, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  if (typeof headers !== "object" || headers === null) return undefined;
  const [, value] = Object.entries(headers).find(([key]) => key.toLowerCase() === name) ?? [];
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

function fieldOf(holder: unknown, name: string): unknown {
  if (typeof holder !== "object" || holder === null) return undefined;
  return (holder as Record<string, unknown>)[name];
}
