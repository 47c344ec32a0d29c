import type { Headers } from "../../core/event.ts";

/** The stored headers are no headers. */
export class HeadersError extends Error {}

/**
 * Headers from a JSON object. Values become text: strings as they are, numbers and booleans as written, objects and
 * arrays as JSON; null means that there is none.
 */
export function readHeaders(text: string, headersMax: number): Headers {
  if (text.startsWith("!")) throw new HeadersError(`the headers have ${text.slice(1)} bytes, which is too much`);
  const value = parse(text);
  if (value === null) return {};
  const isObject = typeof value === "object" && !Array.isArray(value) && !(value instanceof WrittenNumber);
  if (!isObject) throw new HeadersError("the headers are no JSON object");
  const entries = Object.entries(value);
  if (entries.length > headersMax) {
    throw new HeadersError(`there are ${entries.length} headers, more than the ${headersMax} that are allowed`);
  }
  // fromEntries defines own properties, also for a header that is called __proto__.
  return Object.fromEntries(entries.flatMap(([name, item]) => (item === null ? [] : [[name, textOf(item)]])));
}

/** A number as it stands in the text: JavaScript would round a long one. */
class WrittenNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toJSON(): unknown {
    return Number(this.text);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text, (_name: string, value: unknown, context?: { source?: string }) =>
      typeof value === "number" && context?.source !== undefined ? new WrittenNumber(context.source) : value,
    );
  } catch (error) {
    throw new HeadersError(`the headers are no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return value instanceof WrittenNumber ? value.text : JSON.stringify(value);
}
