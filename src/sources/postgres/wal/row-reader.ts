import type { ErrorCode } from "../../../core/errors.ts";
import { type EventHeaders, HEADERS_BYTES_MAX, TEXT_BYTES_MAX, tooLarge } from "../../../core/event.ts";
import type { ClaimedEvent } from "../../../ports/queue-store.ts";
import { isoTime } from "../event-reader.ts";
import { HeadersError, readHeaders } from "../headers.ts";
import type { EventParts } from "./event-parts.ts";
import type { Relation } from "./pgoutput.ts";

/** Sizes beyond which an event becomes a dead letter. */
export interface EventLimits {
  readonly payloadBytesMax: number;
  readonly headersMax: number;
}

type Fault = { readonly code: ErrorCode; readonly reason: string };

const NO_BYTES = Buffer.alloc(0);
const NO_HEADERS: EventHeaders = Object.freeze({});
const BYTEA_OID = 17;
const NULL = 110; // n
const UNCHANGED = 117; // u
/**
 * An event over the limit becomes a dead letter at once. Its payload is kept for a replay unless it exceeds this size:
 * storing it takes about four times its size, half of it in the heap of 128 MB.
 */
export const KEPT_BYTES_MAX = 32 * 1024 * 1024;

/** Parts that are dropped beyond a limit; such an event becomes a dead letter. */
const BOUNDS = {
  type: { name: "type", bytesMax: TEXT_BYTES_MAX },
  key: { name: "key", bytesMax: TEXT_BYTES_MAX },
  correlationId: { name: "correlation id", bytesMax: TEXT_BYTES_MAX },
  traceparent: { name: "trace", bytesMax: TEXT_BYTES_MAX },
  tracestate: { name: "trace", bytesMax: TEXT_BYTES_MAX },
  headers: { name: "headers", bytesMax: HEADERS_BYTES_MAX },
} as const;

/**
 * Turns the rows of one table, as the log has them, into events. An invalid row becomes an event with a fault, never an
 * exception.
 */
export class RowReader {
  readonly #relation: Relation;
  readonly #parts: EventParts;
  readonly #limits: EventLimits;
  /** The start and end of each column in the current row; a negative start means null. */
  readonly #starts: Int32Array;
  readonly #ends: Int32Array;
  readonly #at: Readonly<
    Record<
      "id" | "type" | "key" | "payload" | "headers" | "correlationId" | "createdAt" | "traceparent" | "tracestate",
      number
    >
  >;
  readonly #extras: readonly { readonly at: number; readonly header: string }[];
  readonly #isBytea: boolean;
  readonly #isComplete: boolean;

  constructor(relation: Relation, parts: EventParts, limits: EventLimits) {
    this.#relation = relation;
    this.#parts = parts;
    this.#limits = limits;
    this.#starts = new Int32Array(relation.columns.length);
    this.#ends = new Int32Array(relation.columns.length);
    const at = (name: string | null) => relation.columns.findIndex((column) => column.name === name);
    this.#at = {
      id: at(parts.id),
      type: at(parts.type),
      key: at(parts.key),
      payload: at(parts.payload),
      headers: at(parts.headers),
      correlationId: at(parts.correlationId),
      createdAt: at(parts.createdAt),
      traceparent: at(parts.traceparent),
      tracestate: at(parts.tracestate),
    };
    this.#extras = parts.extras.map(({ column, header }) => ({ at: at(column), header }));
    this.#isBytea = parts.isBytea || relation.columns[this.#at.payload]?.typeOid === BYTEA_OID;
    this.#isComplete = this.#at.id >= 0 && this.#at.type >= 0 && this.#at.payload >= 0;
  }

  /** `place` identifies a row without an id. */
  read(buffer: Buffer, at: number, place: () => string): ClaimedEvent {
    this.#measure(buffer, at);
    const id = this.#text(buffer, this.#at.id);
    const type = this.#bounded(buffer, "type") ?? "";
    const bytes = this.#payloadBytes();
    const createdAt = this.#text(buffer, this.#at.createdAt);
    let fault = this.#fault(id, type, bytes);
    const excess = this.#excess();
    if (excess !== null && id !== null) fault = { code: "EVENT_TOO_LARGE", reason: `Row ${id}: ${excess}` };
    let headers = NO_HEADERS;
    try {
      headers = this.#headers(buffer, id ?? "");
    } catch (error) {
      if (!(error instanceof HeadersError)) throw error;
      fault ??= { code: "EVENT_UNREADABLE", reason: `Row ${id}: ${error.message}` };
    }
    return {
      id: id ?? place(),
      lane: 0,
      type,
      key: this.#bounded(buffer, "key"),
      payload: fault !== null && bytes > KEPT_BYTES_MAX ? NO_BYTES : this.#payload(buffer),
      headers,
      correlationId: this.#bounded(buffer, "correlationId"),
      createdAt: createdAt === null ? null : isoTime(createdAt),
      failures: 0,
      fault,
    };
  }

  #measure(buffer: Buffer, start: number): void {
    const count = Math.min(buffer.readUInt16BE(start), this.#starts.length);
    let at = start + 2;
    for (let column = 0; column < count; column += 1) {
      const kind = buffer[at];
      at += 1;
      if (kind === NULL || kind === UNCHANGED) {
        this.#starts[column] = -1;
        continue;
      }
      const end = at + 4 + buffer.readUInt32BE(at);
      this.#starts[column] = at + 4;
      this.#ends[column] = end;
      at = end;
    }
  }

  #text(buffer: Buffer, column: number): string | null {
    const start = column < 0 ? -1 : this.#starts[column]!;
    return start < 0 ? null : buffer.toString("utf8", start, this.#ends[column]);
  }

  #sizeOf(column: number): number {
    return column < 0 || this.#starts[column]! < 0 ? 0 : this.#ends[column]! - this.#starts[column]!;
  }

  /** Null also when the part exceeds its limit. */
  #bounded(buffer: Buffer, part: keyof typeof BOUNDS): string | null {
    const column = this.#at[part];
    return this.#sizeOf(column) <= BOUNDS[part].bytesMax ? this.#text(buffer, column) : null;
  }

  #excess(): string | null {
    const parts = (Object.keys(BOUNDS) as (keyof typeof BOUNDS)[]).flatMap((part) => {
      const bytes = this.#sizeOf(this.#at[part]);
      const { name, bytesMax } = BOUNDS[part];
      return bytes > bytesMax ? [tooLarge(name, bytes, bytesMax)] : [];
    });
    return parts.length === 0 ? null : parts.join("; ");
  }

  /** The log has bytea as `\x` and two digits for each byte. */
  #payloadBytes(): number {
    const size = this.#sizeOf(this.#at.payload);
    return this.#isBytea ? Math.max(0, (size - 2) / 2) : size;
  }

  /** Copies the payload out of the socket's buffer, the only copy made. */
  #payload(buffer: Buffer): Buffer {
    const column = this.#at.payload;
    const start = column < 0 ? -1 : this.#starts[column]!;
    const end = this.#ends[column]!;
    if (start < 0 || start === end) return NO_BYTES;
    if (this.#isBytea) return Buffer.from(buffer.toString("latin1", start + 2, end), "hex");
    const copy = Buffer.allocUnsafe(end - start);
    buffer.copy(copy, 0, start, end);
    return copy;
  }

  #headers(buffer: Buffer, id: string): EventHeaders {
    const stored = this.#bounded(buffer, "headers");
    const parent = this.#bounded(buffer, "traceparent");
    if (stored === null && parent === null && this.#extras.length === 0 && !this.#parts.hasIdHeader) return NO_HEADERS;
    const own = stored === null ? NO_HEADERS : readHeaders(stored, this.#limits.headersMax);
    const entries: [string, string][] = [];
    if (this.#parts.hasIdHeader) entries.push(["id", id]);
    for (const { at, header } of this.#extras) {
      const value = this.#text(buffer, at);
      if (value !== null) entries.push([header, value]);
    }
    if (parent !== null && parent !== "" && !Object.hasOwn(own, "traceparent")) {
      entries.push(["traceparent", parent]);
      const state = this.#bounded(buffer, "tracestate");
      if (state) entries.push(["tracestate", state]);
    }
    // Stored headers win. Built from entries, since a header can be named __proto__.
    return entries.length === 0 ? own : Object.fromEntries([...entries, ...Object.entries(own)]);
  }

  #fault(id: string | null, type: string, bytes: number): Fault | null {
    const { payloadBytesMax } = this.#limits;
    if (!this.#isComplete) {
      const { id: idName, payload: payloadName, type: typeName } = this.#parts;
      const { schema, table } = this.#relation;
      const reason = `A row of ${schema}.${table} lacks one of ${idName}, ${typeName}, ${payloadName}: the table or its publication was changed`;
      return { code: "EVENT_UNREADABLE", reason };
    }
    if (id === null) return { code: "EVENT_UNREADABLE", reason: "The row has no id" };
    if (type === "") return { code: "EVENT_UNREADABLE", reason: `Row ${id} has no event type` };
    if (bytes <= payloadBytesMax) return null;
    const kept = bytes > KEPT_BYTES_MAX ? "; only the table still has it" : "";
    const reason = `Row ${id}: the payload has ${bytes} bytes, the limit is ${payloadBytesMax}${kept}`;
    return { code: "EVENT_TOO_LARGE", reason };
  }
}
