import type { ErrorCode } from "../../core/errors.ts";
import type { EventHeaders } from "../../core/event.ts";
import type { ClaimedEvent } from "../../ports/queue-store.ts";
import type { Row } from "../../postgres/session.ts";
import { COLUMN } from "./event-columns.ts";
import { HeadersError, type NullHeaders, readHeaders } from "./headers.ts";

type Fault = { readonly code: ErrorCode; readonly reason: string };

interface ReaderOptions {
  readonly payloadBytesMax: number;
  readonly headersMax: number;
  readonly isBytea: boolean;
  /** A row without a payload is not a valid event. */
  readonly needsPayload?: boolean;
  readonly nullHeaders?: NullHeaders | undefined;
}

/** What a row leaves out because of its size; null where it is absent or exceeds the limit. */
export interface LeftOut {
  readonly payload: string | null;
  readonly headers: string | null;
}

const TEXTS = [COLUMN.id, COLUMN.type, COLUMN.key, COLUMN.correlationId, COLUMN.headers, COLUMN.trace] as const;
const PLUS = 43;
const NO_BYTES = Buffer.alloc(0);
const NO_HEADERS: EventHeaders = Object.freeze({});

/**
 * Turns rows into events. An invalid row becomes an event with a fault, never an exception: one bad row must not stop
 * its lane.
 */
export class EventReader {
  readonly #options: ReaderOptions;
  #lastType = "";

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  get payloadBytesMax(): number {
    return this.#options.payloadBytesMax;
  }

  /** The bytes of payload and headers that the row left out and that must be loaded; 0 for none. */
  bytesToLoad(row: Row): number {
    const headers = row[COLUMN.headers];
    const hasLargeHeaders = headers != null && headers.charCodeAt(0) === PLUS;
    if (row[COLUMN.size] == null && !hasLargeHeaders) return 0;
    const size = Number(row[COLUMN.size] ?? 0);
    const headersBytes = hasLargeHeaders ? Number(headers) : 0;
    return (size <= this.#options.payloadBytesMax ? size : 0) + headersBytes;
  }

  /** Estimates the memory that the event takes with all of its parts. */
  bytesOf(row: Row): number {
    let bytes = this.bytesToLoad(row);
    for (let at = 0; at < TEXTS.length; at += 1) bytes += 2 * (row[TEXTS[at]!]?.length ?? 0);
    const text = row[COLUMN.payload];
    if (text == null) return bytes;
    return bytes + (this.#options.isBytea ? text.length >> 1 : text.length);
  }

  /** `loaded` is what the row left out; `failures` is the hold's count. */
  read(row: Row, loaded: LeftOut | null, failures: number | null): ClaimedEvent {
    const text = row[COLUMN.payload] ?? loaded?.payload ?? null;
    let fault = this.#fault(row, text === null);
    let headers = NO_HEADERS;
    const stored = row[COLUMN.headers];
    const headersText = stored?.startsWith("+") ? loaded?.headers : stored;
    if (headersText != null) {
      try {
        headers = readHeaders(headersText, this.#options.headersMax, this.#options.nullHeaders);
      } catch (error) {
        if (!(error instanceof HeadersError)) throw error;
        fault ??= { code: "EVENT_UNREADABLE", reason: `Row ${row[COLUMN.id]}: ${error.message}` };
      }
    }
    const trace = row[COLUMN.trace];
    if (trace) headers = withColumns(headers, trace);
    const createdAt = row[COLUMN.createdAt];
    return {
      id: row[COLUMN.id] ?? "",
      lane: Number(row[COLUMN.lane]),
      type: this.#typeOf(row),
      key: row[COLUMN.key] ?? null,
      payload: text === null ? NO_BYTES : this.#bytes(text),
      headers,
      correlationId: row[COLUMN.correlationId] ?? null,
      createdAt: createdAt == null ? null : isoTime(createdAt),
      failures: failures ?? Number(row[COLUMN.attempts] ?? 0),
      fault,
    };
  }

  /** Events mostly come in runs of one type: they share one string. */
  #typeOf(row: Row): string {
    const type = row[COLUMN.type] ?? "";
    if (type !== this.#lastType) this.#lastType = type;
    return this.#lastType;
  }

  #fault(row: Row, isLeftOut: boolean): Fault | null {
    const size = row[COLUMN.size];
    if (size == null && isLeftOut && this.#options.needsPayload) {
      return { code: "EVENT_UNREADABLE", reason: `Row ${row[COLUMN.id]} has no payload` };
    }
    if (size != null && isLeftOut) {
      const limit = `the limit is ${this.#options.payloadBytesMax}`;
      return { code: "EVENT_TOO_LARGE", reason: `Row ${row[COLUMN.id]}: the payload has ${size} bytes, ${limit}` };
    }
    const excess = row[COLUMN.excess];
    if (excess != null) return { code: "EVENT_TOO_LARGE", reason: `Row ${row[COLUMN.id]}: ${excess}` };
    if (row[COLUMN.type]) return null;
    return { code: "EVENT_UNREADABLE", reason: `Row ${row[COLUMN.id]} has no event type` };
  }

  #bytes(text: string): Buffer {
    if (!this.#options.isBytea) return text === "" ? NO_BYTES : Buffer.from(text, "utf8");
    return text.length <= 2 ? NO_BYTES : Buffer.from(text.slice(2), "hex");
  }
}

/** Adds the headers that have columns of their own. One that is in the headers too wins, so that there are never two. */
function withColumns(headers: EventHeaders, lines: string): EventHeaders {
  const [traceparent, tracestate, causation, contentType] = lines.split("\n");
  const isNew = (name: string, value: string | undefined) => Boolean(value) && !Object.hasOwn(headers, name);
  return {
    ...headers,
    ...(isNew("traceparent", traceparent) ? { traceparent, ...(tracestate ? { tracestate } : {}) } : {}),
    ...(isNew("causation-id", causation) ? { "causation-id": causation } : {}),
    ...(isNew("content-type", contentType) ? { "content-type": contentType } : {}),
  } as EventHeaders;
}

/**
 * Turns `2026-01-10 12:00:00.123456+00` into ISO 8601 with all digits; a Date would cut them to milliseconds. A session
 * in UTC prints `+00`, a timestamp without time zone prints no zone. Values that ISO cannot express (infinity, BC)
 * become null.
 */
export function isoTime(text: string): string | null {
  if (text.charCodeAt(4) !== 45 || text.charCodeAt(10) !== 32 || text.endsWith("C")) return null;
  const end = text.endsWith("+00") ? text.length - 3 : text.length;
  return `${text.slice(0, 10)}T${text.slice(11, end)}Z`;
}
