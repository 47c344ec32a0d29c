import type { Headers } from "../core/event.ts";
import { HeadersError, readHeaders } from "../sources/postgres/headers.ts";

export interface FailedAttempt {
  readonly at: string;
  readonly attempt: number;
  readonly reason: string;
}

const HEADERS_MAX = 10_000;

/** Also a person may have written them. */
export function attemptsOf(text: string | null | undefined): readonly FailedAttempt[] {
  const value: unknown = JSON.parse(text ?? "[]");
  if (!Array.isArray(value)) return [];
  return value.map((item: { readonly at?: unknown; readonly attempt?: unknown; readonly reason?: unknown } | null) => ({
    at: String(item?.at ?? ""),
    attempt: Number(item?.attempt ?? 0),
    reason: String(item?.reason ?? ""),
  }));
}

/** What is no JSON object is shown as the one text that it is. */
export function headersOf(text: string | null | undefined): Headers {
  if (text == null) return {};
  try {
    return readHeaders(text, HEADERS_MAX);
  } catch (error) {
    if (error instanceof HeadersError) return { "": text };
    throw error;
  }
}
