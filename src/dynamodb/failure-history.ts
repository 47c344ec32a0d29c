import { isRelayError } from "../core/errors.ts";
import type { FailedAttempt } from "../ports/technical-events.ts";
import type { IntentRecord } from "./intent-record.ts";

/** One attempt that failed. */
export interface IntentFailure {
  readonly at: number;
  readonly reason: string;
}

/** The stored history of an intent's failures. */
export interface History {
  readonly attemptCount: number;
  readonly lastError: string;
  readonly errors: readonly FailedAttempt[];
}

/** An item is limited to 400 KB, and the payload needs most of them. */
const ERRORS_MAX = 10;
const REASON_LENGTH_MAX = 500;
const SHORT_LENGTH_MAX = 100;

/** Records a failure. If the item has no room for the whole history, records only the last reason, truncated. */
export async function withFailure<Result>(
  record: IntentRecord,
  failure: IntentFailure,
  write: (history: History) => Promise<Result>,
): Promise<Result> {
  const attemptCount = record.attemptCount + 1;
  const at = new Date(failure.at).toISOString();
  const attempt = (length: number) => ({ at, attempt: attemptCount, reason: cut(failure.reason, length) });
  const { reason: lastError, ...rest } = attempt(REASON_LENGTH_MAX);
  const errors = [...record.errors, { ...rest, reason: lastError }].slice(-ERRORS_MAX);
  try {
    return await write({ attemptCount, lastError, errors });
  } catch (error) {
    if (!isRelayError(error, "EVENT_TOO_LARGE")) throw error;
    const short = attempt(SHORT_LENGTH_MAX);
    return await write({ attemptCount, lastError: short.reason, errors: [] });
  }
}

function cut(text: string, length: number): string {
  return (text.length <= length ? text : `${text.slice(0, length - 1)}…`).toWellFormed();
}
