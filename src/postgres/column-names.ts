/**
 * Column names where the usual ones do not fit. Null means that the table has none, even if one of the usual names
 * exists.
 */
export interface ColumnNames {
  readonly id?: string;
  readonly type?: string;
  readonly key?: string | null;
  readonly payload?: string;
  readonly headers?: string | null;
  readonly correlationId?: string | null;
  /** Sent as the header `causation-id`; not in a log. */
  readonly causationId?: string | null;
  /** Sent as the header `content-type`; not in a log. */
  readonly contentType?: string | null;
  readonly createdAt?: string | null;
  /** The order in which events of one key were written; in a log, the position. */
  readonly order?: string;
  /** In a log: the transaction that wrote the row. */
  readonly xid?: string | null;
  /**
   * The columns that mark an event as published: booleans (true) or timestamps (not null). All are read and set
   * together.
   */
  readonly flags?: readonly string[];
  readonly status?: string | null;
  readonly nextAttemptAt?: string | null;
  readonly attempts?: string | null;
  readonly lastError?: string | null;
}

/** The usual names; the first that a table has wins. */
export const CANDIDATES = {
  id: ["id", "event_id"],
  type: ["event_type", "type", "event_name", "intent_type", "name"],
  key: ["aggregate_id", "partition_key", "key", "stream_id", "aggregateid", "event_key"],
  payload: ["payload", "data", "event_data", "body"],
  headers: ["headers", "metadata"],
  correlationId: ["correlation_id"],
  causationId: ["causation_id"],
  contentType: ["content_type"],
  traceparent: ["traceparent"],
  tracestate: ["tracestate"],
  createdAt: ["created_at", "occurred_at", "occurred_on"],
  intent: ["intent"],
  status: ["status"],
  nextAttemptAt: ["next_attempt_at"],
  attempts: ["attempts", "attempt_count"],
  lastError: ["last_error"],
} as const;

/** The usual names of columns that mark an event as published. */
export const FLAG_CANDIDATES = ["published", "published_at", "processed_at", "delivered_at", "dispatched_at"] as const;

/** A column as the catalog describes it. */
export interface ColumnInfo {
  readonly name: string;
  /** With its modifier, `character varying(100)`: an explicit cast to it cuts the value instead of failing. */
  readonly type: string;
  /** Without its modifier, `character varying`: for comparisons. */
  readonly castType: string;
  /** The type under a domain; otherwise the same as `castType`. */
  readonly baseType: string;
  readonly isEnum: boolean;
  /** An identity column, or one whose default is the next value of a sequence. */
  readonly isSequence: boolean;
}

const TEXT_TYPES = new Set(["text", "character varying", "bpchar", "character", "name", "citext"]);
const TIMESTAMP_TYPES = new Set(["timestamp with time zone", "timestamp without time zone"]);
const INTEGER_TYPES = new Set(["smallint", "integer", "bigint"]);

/** Text of any type, or an enum. */
export const isText = ({ baseType, isEnum }: ColumnInfo): boolean => TEXT_TYPES.has(baseType) || isEnum;
/** A timestamp with or without time zone. */
export const isTimestamp = ({ baseType }: ColumnInfo): boolean => TIMESTAMP_TYPES.has(baseType);
/** An integer of any size. */
export const isInteger = ({ baseType }: ColumnInfo): boolean => INTEGER_TYPES.has(baseType);
/** json or jsonb. */
export const isJson = ({ baseType }: ColumnInfo): boolean => baseType === "json" || baseType === "jsonb";
/** A boolean. */
export const isBoolean = ({ baseType }: ColumnInfo): boolean => baseType === "boolean";
