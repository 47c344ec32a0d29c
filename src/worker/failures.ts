import { reasonOf } from "../core/errors.ts";
import { retryAfterMs } from "../core/retry-after.ts";

/** To be thrown by `execute`: tried again, under a schedule not before `afterMs` have passed. */
export class RetryLater extends Error {
  readonly retryAfterMs: number;

  constructor(reason: string, afterMs: number, options?: ErrorOptions) {
    super(reason, options);
    this.name = "RetryLater";
    this.retryAfterMs = afterMs;
  }
}

/** To be thrown by `execute`: no further try will help. */
export class FinalFailure extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = "FinalFailure";
  }
}

export interface Failure {
  readonly reason: string;
  /** What the provider asked for; null when it said nothing. */
  readonly afterMs: number | null;
  readonly isFinal: boolean;
}

/** It is written into the log and stays there. */
const REASON_LENGTH_MAX = 500;

/** What an error of `resolve` or `execute` says, whatever it is: an answer of HTTP may be thrown as it is. */
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
  return typeof status === "number" ? `answered ${status}` : "something was thrown that is no error";
}

/** Of the error, the answer it carries, or its cause. */
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
