import { isUtf8 } from "node:buffer";
import { RelayError } from "../core/errors.ts";
import type { EventHeaders } from "../core/event.ts";
import type { NewEvent } from "./new-event.ts";
import type { TableColumn } from "./outbox-table.ts";

/** Refuses what the relay could not carry while the application can still handle it in its transaction. */
export interface EventLimits {
  readonly payloadBytesMax: number;
  readonly headersMax: number;
}

/** As the source: larger headers are not loaded. */
const HEADERS_BYTES_MAX = 256 * 1024;

/** The error for an event that cannot be written. */
export function invalid(event: NewEvent, what: string): RelayError {
  const id = typeof event?.id === "string" ? ` ${event.id}` : "";
  const type = typeof event?.type === "string" ? ` of type ${JSON.stringify(event.type.slice(0, 100))}` : "";
  return new RelayError("EVENT_INVALID", `The event${id}${type} cannot be written: ${what}`);
}

/** A text that PostgreSQL accepts: an invalid one would fail the statement, and abort the transaction. */
export function checkedText(event: NewEvent, name: string, value: unknown, column?: TableColumn): string {
  if (typeof value !== "string") throw invalid(event, `${name} is ${kindOf(value)}, not a text`);
  if (value.includes("\0")) throw invalid(event, `${name} contains a zero character, which PostgreSQL cannot store`);
  if (!value.isWellFormed()) throw invalid(event, `${name} contains a lone surrogate, which is not valid Unicode`);
  const misfit = column === undefined ? null : misfitOf(column, value);
  if (misfit !== null) throw invalid(event, `${name} is ${JSON.stringify(value.slice(0, 100))}, ${misfit}`);
  return value;
}

const UUID = /^\{?[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}\}?$/i;
const INTEGERS = new Set(["smallint", "integer", "bigint"]);

function misfitOf({ name, type, baseType }: TableColumn, text: string): string | null {
  if (baseType === "uuid") return UUID.test(text) ? null : `but the column ${name} requires a UUID`;
  if (INTEGERS.has(baseType)) return /^-?\d+$/.test(text) ? null : `but the column ${name} requires an integer`;
  const lengthMax = /^character(?: varying)?\((\d+)\)$/.exec(type)?.[1];
  if (lengthMax === undefined || [...text].length <= Number(lengthMax)) return null;
  return `but the column ${name} allows ${lengthMax} characters`;
}

/** Checks headers and their total size. */
export function checkedHeaders(event: NewEvent, headers: EventHeaders, { headersMax }: EventLimits): EventHeaders {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) {
    throw invalid(event, `headers is ${kindOf(headers)}, not an object of texts`);
  }
  const entries = Object.entries(headers);
  if (entries.length > headersMax) {
    throw invalid(event, `it has ${entries.length} headers; the maximum is ${headersMax}`);
  }
  let bytes = 0;
  for (const [name, value] of entries) {
    checkedText(event, "the name of a header", name);
    bytes += Buffer.byteLength(name) + Buffer.byteLength(checkedText(event, `the header ${name}`, value));
  }
  if (bytes > HEADERS_BYTES_MAX) {
    throw invalid(event, `its headers have ${bytes} bytes; the maximum is ${HEADERS_BYTES_MAX}`);
  }
  return headers;
}

/** The payload in the column's form: a text, or the hexadecimal form of bytea. */
export function payloadValue(event: NewEvent, column: TableColumn, { payloadBytesMax }: EventLimits): string {
  const content = contentOf(event);
  const bytes = Buffer.byteLength(content);
  if (bytes > payloadBytesMax) {
    throw invalid(event, `its payload has ${bytes} bytes; the maximum is ${payloadBytesMax}`);
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

/** A text or bytes unchanged, anything else as JSON. */
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
  if (text === undefined) throw invalid(event, `its payload is ${kindOf(value)}, which JSON cannot represent`);
  return text;
}

function textOf(event: NewEvent, bytes: Uint8Array, { name, baseType }: TableColumn): string {
  if (isUtf8(bytes)) return Buffer.from(bytes).toString();
  throw invalid(event, `its payload is not UTF-8, but the column ${name} is ${baseType}; bytea accepts any bytes`);
}

/** Only texts and bytes need the check: JSON.stringify produced the others. */
function checkJson(event: NewEvent, text: string, { name, baseType }: TableColumn): void {
  const { payload } = event;
  if (typeof payload === "string" || payload instanceof Uint8Array) {
    try {
      JSON.parse(text);
    } catch {
      throw invalid(event, `its payload is a text that is not JSON, but the column ${name} is ${baseType}`);
    }
  }
  // An escape counts only when an odd number of backslashes precedes its u.
  if (baseType === "jsonb" && /(?<!\\)(?:\\\\)*\\u0000/.test(text)) {
    throw invalid(event, `its payload contains a zero character, which jsonb cannot store`);
  }
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return value === undefined ? "missing" : `of type ${typeof value}`;
}
