import type { EventHeaders } from "../../core/event.ts";

const NO_HEADERS: EventHeaders = Object.freeze({});

/** The stored headers are invalid; the message says why. */
export class HeadersError extends Error {}

/** What happens to a header whose value is null: it is dropped, or becomes the text `null`. */
export type NullHeaders = "left out" | "text";

/**
 * Reads headers from a JSON object, or from null. Values become text: strings unchanged, numbers and booleans as
 * written, objects and arrays as JSON.
 */
export function readHeaders(text: string, headersMax: number, nulls: NullHeaders = "left out"): EventHeaders {
  if (text === "{}" || text === "null") return NO_HEADERS;
  if (text.startsWith("!")) throw new HeadersError(`the headers have ${text.slice(1)} bytes, which exceeds the limit`);
  const parsed = parse(text);
  if (!isObject(parsed)) throw new HeadersError("the headers are not a JSON object");
  const values = Object.values(parsed);
  if (values.length > headersMax) {
    throw new HeadersError(`there are ${values.length} headers; the limit is ${headersMax}`);
  }
  return values.every((value) => typeof value === "string") ? (parsed as EventHeaders) : asTexts(text, nulls);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new HeadersError(`the headers are not valid JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses again and keeps every number as written: JavaScript would round a long one. */
function asTexts(text: string, nulls: NullHeaders): EventHeaders {
  const exact: unknown = JSON.parse(text, (_name: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && context?.source !== undefined ? rawJson(context.source) : value,
  );
  const entries = Object.entries(exact as Record<string, unknown>);
  const kept = nulls === "text" ? entries : entries.filter(([, value]) => value !== null);
  // fromEntries defines own properties, also for a header named __proto__.
  return Object.fromEntries(
    kept.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  );
}

/** A number that JSON.stringify writes unchanged. Node has it, the type definitions do not yet. */
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;
