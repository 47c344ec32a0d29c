/**
 * Names of columns where the usual ones do not fit. Null says that the table has none, although one of the usual names
 * is there.
 */
export interface ColumnNames {
  readonly id?: string;
  readonly type?: string;
  readonly key?: string | null;
  readonly payload?: string;
  readonly headers?: string | null;
  readonly correlationId?: string | null;
  readonly createdAt?: string | null;
  /** The order in which events of one key were written; of a log, the position. */
  readonly order?: string;
  /** Of a log: the transaction that wrote the row. */
  readonly xid?: string | null;
  /** What says that an event is published: booleans (true) or timestamps (not null). All are read and set together. */
  readonly flags?: readonly string[];
  readonly status?: string | null;
  readonly nextAttemptAt?: string | null;
  readonly attempts?: string | null;
  readonly lastError?: string | null;
}

/** The usual names, the first one that a table has wins. */
export const CANDIDATES = {
  id: ["id", "event_id"],
  type: ["event_type", "type", "event_name", "intent_type", "name"],
  key: ["aggregate_id", "partition_key", "key", "stream_id", "aggregateid", "event_key"],
  payload: ["payload", "data", "event_data", "body"],
  headers: ["headers", "metadata"],
  correlationId: ["correlation_id"],
  traceparent: ["traceparent"],
  tracestate: ["tracestate"],
  createdAt: ["created_at", "occurred_at", "occurred_on"],
  intent: ["intent"],
  status: ["status"],
  nextAttemptAt: ["next_attempt_at"],
  attempts: ["attempts", "attempt_count"],
  lastError: ["last_error"],
} as const;

export const FLAG_CANDIDATES = ["published", "published_at", "processed_at", "delivered_at", "dispatched_at"] as const;

/** A column as the catalogue knows it. */
export interface ColumnInfo {
  readonly name: string;
  /** With its modifier, `character varying(100)`: an explicit cast to it cuts off instead of failing. */
  readonly type: string;
  /** Without its modifier, `character varying`: to compare with. */
  readonly castType: string;
  /** What a domain is made of; else the same as `castType`. */
  readonly baseType: string;
  readonly isEnum: boolean;
  /** An identity column, or one whose default takes the next value of a sequence. */
  readonly isSequence: boolean;
}

const TEXT_TYPES = new Set(["text", "character varying", "bpchar", "character", "name", "citext"]);
const TIMESTAMP_TYPES = new Set(["timestamp with time zone", "timestamp without time zone"]);
const INTEGER_TYPES = new Set(["smallint", "integer", "bigint"]);

export const isText = ({ baseType, isEnum }: ColumnInfo): boolean => TEXT_TYPES.has(baseType) || isEnum;
export const isTimestamp = ({ baseType }: ColumnInfo): boolean => TIMESTAMP_TYPES.has(baseType);
export const isInteger = ({ baseType }: ColumnInfo): boolean => INTEGER_TYPES.has(baseType);
export const isJson = ({ baseType }: ColumnInfo): boolean => baseType === "json" || baseType === "jsonb";
export const isBoolean = ({ baseType }: ColumnInfo): boolean => baseType === "boolean";
