import type { Headers } from "../../core/event.ts";

const NO_HEADERS: Headers = Object.freeze({});

/** The stored headers are no headers; the message says why. */
export class HeadersError extends Error {}

/** Headers from the text of a jsonb object, or of null. A value that is no string becomes its JSON text. */
export function readHeaders(text: string, headersMax: number): Headers {
  if (text === "{}" || text === "null") return NO_HEADERS;
  if (text.startsWith("!")) throw new HeadersError(`the headers have ${text.slice(1)} bytes, which is too much`);
  const parsed: unknown = JSON.parse(text);
  if (!isObject(parsed)) throw new HeadersError("the headers are no JSON object");
  const values = Object.values(parsed);
  if (values.length > headersMax) {
    throw new HeadersError(`there are ${values.length} headers, more than the ${headersMax} that are allowed`);
  }
  return values.every((value) => typeof value === "string") ? (parsed as Headers) : asTexts(text);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Read once more, with every number as it is written: JavaScript would round a long one. */
function asTexts(text: string): Headers {
  const exact: unknown = JSON.parse(text, (_name: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && context?.source !== undefined ? rawJson(context.source) : value,
  );
  const entries = Object.entries(exact as Record<string, unknown>);
  // fromEntries defines own properties, also for a header that is called __proto__.
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  );
}

/** A number that JSON.stringify writes as it stands. Known to Node, not yet to the types. */
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;
