import type { PipelineSpec } from "../../ports/queue-store.ts";

/** Headers beyond this are not even loaded. */
const HEADERS_BYTES_MAX = 256 * 1024;

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
} as const;

/** The columns in that order; lane, rank and number come from the claim's own `r`. */
export function eventColumns({ payloadBytesMax }: PipelineSpec): string {
  return `t.event_id, t.event_type, t.partition_key,
  case when octet_length(t.payload) <= ${payloadBytesMax} then t.payload end, octet_length(t.payload),
  case when pg_column_size(t.headers) <= ${HEADERS_BYTES_MAX} then t.headers::text
    else '!' || pg_column_size(t.headers) end,
  t.created_at, t.attempts, t.last_error is not null, r.lane, r.rank, r.number`;
}

/** The bytes of a row that a claim loads. A toasted value tells its size without being read. */
export function loadedBytes({ payloadBytesMax }: PipelineSpec): string {
  return `case when octet_length(t.payload) <= ${payloadBytesMax} then octet_length(t.payload) else 0 end`;
}
