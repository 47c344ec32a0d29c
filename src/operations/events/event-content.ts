import type { EventHeaders } from "../../core/event.ts";
import { HeadersError, readHeaders } from "../../sources/postgres/headers.ts";

/** One failed attempt of an event. */
export interface FailedAttempt {
  readonly at: string;
  readonly attempt: number;
  readonly reason: string;
}

const HEADERS_MAX = 10_000;

/** Also a person may have written them. */
/**
 * Numbers that continue after a replay, which restarts the count: no two attempts of a pipeline share one. Must be
 * called in order of time.
 */
export function attemptNumbers(): (attempt: number) => number {
  let last = 0;
  let before = 0;
  return (attempt) => {
    if (attempt + before <= last) before = last + 1 - attempt;
    last = attempt + before;
    return last;
  };
}

/** With continuous numbers, as shown to people. */
export function numbered(errors: readonly FailedAttempt[]): readonly FailedAttempt[] {
  const numberOf = attemptNumbers();
  return errors.map((error) => ({ ...error, attempt: numberOf(error.attempt) }));
}

/** The failed attempts in a stored JSON text. */
export function attemptsOf(text: string | null | undefined): readonly FailedAttempt[] {
  const value: unknown = JSON.parse(text ?? "[]");
  if (!Array.isArray(value)) return [];
  return value.map((item: { readonly at?: unknown; readonly attempt?: unknown; readonly reason?: unknown } | null) => ({
    at: String(item?.at ?? ""),
    attempt: Number(item?.attempt ?? 0),
    reason: String(item?.reason ?? ""),
  }));
}

/** Content that is not a JSON object is shown as a single text. */
export function headersOf(text: string | null | undefined): EventHeaders {
  if (text == null) return {};
  try {
    return readHeaders(text, HEADERS_MAX);
  } catch (error) {
    if (error instanceof HeadersError) return { "": text };
    throw error;
  }
}
