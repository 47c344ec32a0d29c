import { HEADERS_BYTES_MAX, TEXT_BYTES_MAX } from "../../../core/event.ts";
import type { ClaimedEvent, PipelineSpec } from "../../../ports/queue-store.ts";
import type { Row } from "../../../postgres/session.ts";
import { bounded, COLUMN, excessSql, typeSql } from "../event-columns.ts";
import type { EventReader } from "../event-reader.ts";
import type { QueueScope } from "./openoutbox-table.ts";

/** The claim's own columns in the returned rows, after the columns that every reader of events has. */
export const CLAIM_COLUMN = {
  hasFailed: COLUMN.excess + 1,
  rank: COLUMN.excess + 2,
  number: COLUMN.excess + 3,
} as const;

/**
 * The columns that a claim returns. Everything below the limits comes with the row. Lane, rank and number come from the
 * claim's own `r`.
 */
export function eventColumns({ shape }: QueueScope, { payloadBytesMax }: PipelineSpec): string {
  const isLoaded = `octet_length(t.payload) <= ${payloadBytesMax}`;
  const hasHeaders = `r.headers_bytes <= ${HEADERS_BYTES_MAX}`;
  const columns = [
    shape.idText,
    "r.lane",
    typeSql(shape),
    bounded(shape.key),
    `case when ${isLoaded} then t.payload end`,
    `case when not (${isLoaded}) then octet_length(t.payload) end`,
    `case when ${hasHeaders} then ${shape.correlationId} end`,
    shape.createdText,
    `case when ${hasHeaders} then t.headers::text else '!' || r.headers_bytes end`,
    shape.attempts,
    shape.traceText,
    excessSql(shape),
  ];
  return `${columns.join(", ")}, t.last_error is not null, r.rank, r.number`;
}

/** Select this once as `headers_bytes` wherever rows are picked: only their text shows the size of headers. */
export const HEADERS_BYTES = "octet_length(t.headers::text)";

/** The bytes that a claim loads for a row, without the headers. */
export function loadedBytes({ payloadBytesMax }: PipelineSpec): string {
  return [
    upTo("octet_length(t.payload)", payloadBytesMax),
    upTo("octet_length(t.event_type)", TEXT_BYTES_MAX),
    upTo("octet_length(t.partition_key)", TEXT_BYTES_MAX),
  ].join(" + ");
}

/** The bytes of the headers, for rows with `headers_bytes`. */
export const LOADED_HEADERS_BYTES = upTo("headers_bytes", HEADERS_BYTES_MAX);

function upTo(size: string, max: number): string {
  return `case when ${size} <= ${max} then ${size} else 0 end`;
}

/**
 * Events in the order of delivery: by time of writing, then as they were picked. The statement returns them unordered,
 * since a sort of payloads would spill to disk on the server.
 */
export function readClaimed(rows: readonly Row[], reader: EventReader): ClaimedEvent[] {
  return [...rows].sort(byTimeAndRank).map((row) => reader.read(row, null, null));
}

/** All texts are in UTC and of one form, so they compare like times. */
function byTimeAndRank(left: Row, right: Row): number {
  const [a, b] = [left[COLUMN.createdAt] ?? "", right[COLUMN.createdAt] ?? ""];
  if (a === b) return Number(left[CLAIM_COLUMN.rank]) - Number(right[CLAIM_COLUMN.rank]);
  return a < b ? -1 : 1;
}
