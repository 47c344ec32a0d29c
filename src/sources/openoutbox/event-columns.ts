import { HEADERS_BYTES_MAX, TEXT_BYTES_MAX, tooLarge } from "../../core/event-size.ts";
import type { PipelineSpec } from "../../ports/queue-store.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";

/** Where each value stands in a row that a claim returns. */
export const COLUMN = {
  id: 0,
  type: 1,
  key: 2,
  /** Null when it is too large to be loaded, or null in the table. */
  payload: 3,
  size: 4,
  /** A `!` and the size when they are too large to be loaded. */
  headers: 5,
  createdAt: 6,
  attempts: 7,
  hasFailed: 8,
  lane: 9,
  rank: 10,
  /** Of its claim. */
  number: 11,
  /** What is too large to be loaded, for people; null when nothing is. */
  excess: 12,
} as const;

/** The columns in that order; lane, rank and number come from the claim's own `r`. */
export function eventColumns({ payloadBytesMax }: PipelineSpec): string {
  return `t.event_id, left(t.event_type, ${TEXT_BYTES_MAX}),
  case when octet_length(t.partition_key) <= ${TEXT_BYTES_MAX} then t.partition_key end,
  case when octet_length(t.payload) <= ${payloadBytesMax} then t.payload end, octet_length(t.payload),
  case when r.headers_bytes <= ${HEADERS_BYTES_MAX} then t.headers::text else '!' || r.headers_bytes end,
  t.created_at, t.attempts, t.last_error is not null, r.lane, r.rank, r.number,
  nullif(concat_ws('; ', ${excess("type", "t.event_type")}, ${excess("key", "t.partition_key")}), '')`;
}

/** To be selected once, as `headers_bytes`, wherever rows are picked: only their text tells the size of headers. */
export const HEADERS_BYTES = "octet_length(t.headers::text)";

function excess(part: string, text: string): string {
  const told = quoteLiteral(tooLarge(part, "#", TEXT_BYTES_MAX));
  return `case when octet_length(${text}) > ${TEXT_BYTES_MAX} then replace(${told}, '#', octet_length(${text})::text) end`;
}

/** The bytes of a row that a claim loads, all of its parts together but the headers. */
export function loadedBytes({ payloadBytesMax }: PipelineSpec): string {
  return [
    upTo("octet_length(t.payload)", payloadBytesMax),
    upTo("octet_length(t.event_type)", TEXT_BYTES_MAX),
    upTo("octet_length(t.partition_key)", TEXT_BYTES_MAX),
  ].join(" + ");
}

/** Those of the headers, of rows that have `headers_bytes`. */
export const LOADED_HEADERS_BYTES = upTo("headers_bytes", HEADERS_BYTES_MAX);

function upTo(size: string, max: number): string {
  return `case when ${size} <= ${max} then ${size} else 0 end`;
}
