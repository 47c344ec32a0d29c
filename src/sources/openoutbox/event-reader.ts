import type { ErrorCode } from "../../core/errors.ts";
import type { Headers } from "../../core/event.ts";
import type { ClaimedEvent, PipelineSpec } from "../../ports/queue-store.ts";
import type { Row } from "../../postgres/session.ts";
import { COLUMN } from "./event-columns.ts";
import { HeadersError, readHeaders } from "./headers.ts";
import { CORRELATION_HEADER } from "./openoutbox-table.ts";

type Fault = { readonly code: ErrorCode; readonly reason: string };

const NO_BYTES = Buffer.alloc(0);

/**
 * Events in the order of delivery: by time of writing, then as they were picked. The statement returns them in no
 * order, since a sort of payloads would go through files on the server.
 */
export function readEvents(rows: readonly Row[], spec: PipelineSpec): ClaimedEvent[] {
  return [...rows].sort(byTimeAndRank).map((row) => readEvent(row, spec));
}

/** The texts are all in UTC and of one form, so they compare like the times. */
function byTimeAndRank(left: Row, right: Row): number {
  const [a, b] = [left[COLUMN.createdAt] ?? "", right[COLUMN.createdAt] ?? ""];
  if (a === b) return Number(left[COLUMN.rank]) - Number(right[COLUMN.rank]);
  return a < b ? -1 : 1;
}

/** A row that is no proper event becomes one with a fault, never an exception. */
function readEvent(row: Row, spec: PipelineSpec): ClaimedEvent {
  const payload = row[COLUMN.payload] ?? null;
  let fault = payloadFault(row, payload === null, spec);
  let headers: Headers = {};
  try {
    headers = headersOf(row, spec.headersMax);
  } catch (error) {
    if (!(error instanceof HeadersError)) throw error;
    fault ??= { code: "EVENT_UNREADABLE", reason: `Row ${row[COLUMN.id]}: ${error.message}` };
  }
  return {
    id: row[COLUMN.id] ?? "",
    type: row[COLUMN.type] ?? "",
    key: row[COLUMN.key] ?? null,
    // The server writes bytea as \x and two digits per byte.
    payload: payload === null || payload.length <= 2 ? NO_BYTES : Buffer.from(payload.slice(2), "hex"),
    headers,
    correlationId: Object.hasOwn(headers, CORRELATION_HEADER) ? (headers[CORRELATION_HEADER] ?? null) : null,
    createdAt: isoTime(row[COLUMN.createdAt] ?? ""),
    lane: Number(row[COLUMN.lane]),
    failures: Number(row[COLUMN.attempts]),
    fault,
  };
}

function headersOf(row: Row, headersMax: number): Headers {
  return readHeaders(row[COLUMN.headers] ?? "null", headersMax);
}

function payloadFault(row: Row, isAbsent: boolean, { payloadBytesMax }: PipelineSpec): Fault | null {
  const name = `Row ${row[COLUMN.id]}`;
  const size = row[COLUMN.size];
  if (size == null) return { code: "EVENT_UNREADABLE", reason: `${name} has no payload` };
  if (isAbsent) {
    const reason = `${name}: the payload has ${size} bytes, more than the ${payloadBytesMax} that are allowed`;
    return { code: "EVENT_TOO_LARGE", reason };
  }
  const excess = row[COLUMN.excess];
  if (excess != null) return { code: "EVENT_TOO_LARGE", reason: `${name}: ${excess}` };
  return row[COLUMN.type] ? null : { code: "EVENT_UNREADABLE", reason: `${name} has no event type` };
}

/**
 * `2026-01-10 12:00:00.123456+00` as ISO 8601 with all of its digits; a Date would cut them to milliseconds. What ISO
 * cannot say (infinity, BC) is null.
 */
function isoTime(text: string): string | null {
  if (text.charCodeAt(4) !== 45 || text.charCodeAt(10) !== 32 || !text.endsWith("+00")) return null;
  return `${text.slice(0, 10)}T${text.slice(11, -3)}Z`;
}
