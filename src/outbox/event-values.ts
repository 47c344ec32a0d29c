import { isUtf8 } from "node:buffer";
import { RelayError } from "../core/errors.ts";
import type { Headers } from "../core/event.ts";
import type { NewEvent } from "./new-event.ts";
import type { TableColumn } from "./outbox-table.ts";

/** What the relay would refuse to carry is refused here, where the application still has its transaction. */
export interface EventLimits {
  readonly payloadBytesMax: number;
  readonly headersMax: number;
}

/** As the source: beyond this it does not load them. */
const HEADERS_BYTES_MAX = 256 * 1024;

export function invalid(event: NewEvent, what: string): RelayError {
  const id = typeof event?.id === "string" ? ` ${event.id}` : "";
  const type = typeof event?.type === "string" ? ` of type ${JSON.stringify(event.type.slice(0, 100))}` : "";
  return new RelayError("EVENT_INVALID", `The event${id}${type} cannot be written: ${what}`);
}

/** A text that PostgreSQL takes: one of a wrong form would fail the statement, and the transaction with it. */
export function checkedText(event: NewEvent, name: string, value: unknown, column?: TableColumn): string {
  if (typeof value !== "string") throw invalid(event, `${name} is ${kindOf(value)}, not a text`);
  if (value.includes("\0")) throw invalid(event, `${name} contains a zero character, which PostgreSQL cannot store`);
  if (!value.isWellFormed()) throw invalid(event, `${name} contains half a surrogate pair, which is no Unicode`);
  const misfit = column === undefined ? null : misfitOf(column, value);
  if (misfit !== null) throw invalid(event, `${name} is ${JSON.stringify(value.slice(0, 100))}, ${misfit}`);
  return value;
}

const UUID = /^\{?[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}\}?$/i;
const INTEGERS = new Set(["smallint", "integer", "bigint"]);

function misfitOf({ name, type, baseType }: TableColumn, text: string): string | null {
  if (baseType === "uuid") return UUID.test(text) ? null : `and the column ${name} takes a UUID`;
  if (INTEGERS.has(baseType)) return /^-?\d+$/.test(text) ? null : `and the column ${name} takes an integer`;
  const lengthMax = /^character(?: varying)?\((\d+)\)$/.exec(type)?.[1];
  if (lengthMax === undefined || [...text].length <= Number(lengthMax)) return null;
  return `and the column ${name} takes ${lengthMax} characters`;
}

export function checkedHeaders(event: NewEvent, headers: Headers, { headersMax }: EventLimits): Headers {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) {
    throw invalid(event, `headers is ${kindOf(headers)}, not an object of texts`);
  }
  const entries = Object.entries(headers);
  if (entries.length > headersMax) {
    throw invalid(event, `it has ${entries.length} headers, more than the ${headersMax} that are allowed`);
  }
  let bytes = 0;
  for (const [name, value] of entries) {
    checkedText(event, "the name of a header", name);
    bytes += Buffer.byteLength(name) + Buffer.byteLength(checkedText(event, `the header ${name}`, value));
  }
  if (bytes > HEADERS_BYTES_MAX) {
    throw invalid(event, `its headers have ${bytes} bytes, more than the ${HEADERS_BYTES_MAX} that are allowed`);
  }
  return headers;
}

/** The payload as the column takes it: a text, or the hexadecimal form of bytea. */
export function payloadValue(event: NewEvent, column: TableColumn, { payloadBytesMax }: EventLimits): string {
  const content = contentOf(event);
  const bytes = Buffer.byteLength(content);
  if (bytes > payloadBytesMax) {
    throw invalid(event, `its payload has ${bytes} bytes, more than the ${payloadBytesMax} that are allowed`);
  }
  if (column.baseType === "bytea") return `\\x${bytesOf(content).toString("hex")}`;
  const text = typeof content === "string" ? content : textOf(event, content, column);
  checkedText(event, "payload", text);
  if (column.baseType === "json" || column.baseType === "jsonb") checkJson(event, text, column);
  return text;
}

function bytesOf(content: string | Uint8Array): Buffer {
  return typeof content === "string" ? Buffer.from(content) : Buffer.from(content);
}

/** A text or bytes as they are, anything else as JSON. */
function contentOf(event: NewEvent): string | Uint8Array {
  const { payload } = event;
  if (typeof payload === "string" || payload instanceof Uint8Array) return payload;
  return jsonOf(event, payload);
}

function jsonOf(event: NewEvent, value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw invalid(event, `its payload cannot be written as JSON: ${(cause as Error).message}`);
  }
  if (text === undefined) throw invalid(event, `its payload is ${kindOf(value)}, which is no JSON`);
  return text;
}

function textOf(event: NewEvent, bytes: Uint8Array, { name, baseType }: TableColumn): string {
  if (isUtf8(bytes)) return Buffer.from(bytes).toString();
  throw invalid(event, `its payload is no UTF-8, and the column ${name} is ${baseType}; bytea takes any bytes`);
}

/** JSON.stringify made most of them; only a text or bytes can be anything. */
function checkJson(event: NewEvent, text: string, { name, baseType }: TableColumn): void {
  const { payload } = event;
  if (typeof payload === "string" || payload instanceof Uint8Array) {
    try {
      JSON.parse(text);
    } catch {
      throw invalid(event, `its payload is a text that is no JSON, and the column ${name} is ${baseType}`);
    }
  }
  // An escape counts when the number of backslashes before its u is odd.
  if (baseType === "jsonb" && /(?<!\\)(?:\\\\)*\\u0000/.test(text)) {
    throw invalid(event, `its payload contains a zero character, which jsonb cannot store`);
  }
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return value === undefined ? "missing" : `of type ${typeof value}`;
}
