import { quoteLiteral, type TableName } from "../../../postgres/identifiers.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { TableShape } from "../table-shape.ts";

/**
 * The parked events of one pipeline, as a table of pending events: the statements of any queue can read, retry and hold
 * them or turn them into dead letters.
 */
export function parkedShape({ tables }: Database, pipeline: string, log: TableName): TableShape {
  const ofPipeline = `t.pipeline = ${quoteLiteral(pipeline)}`;
  return {
    // Messages about an event name the log that it came from.
    name: log,
    quotedName: tables.parked,
    preset: "flag",
    id: "t.event_id",
    idType: "text",
    idText: "t.event_id",
    eventType: `t.event_type collate "C"`,
    typeColumn: "t.event_type",
    key: "t.event_key",
    keyText: "t.event_key",
    payload: { kind: "bytea", column: "t.payload", body: "t.payload" },
    payloadBytes: "t.payload",
    headersText: "t.headers::text",
    headersJson: HEADERS_JSON,
    correlationId: "t.correlation_id",
    correlationText: "t.correlation_id",
    createdText: "t.created_at::text",
    createdAt: "t.created_at",
    traceText: "null",
    unbounded: new Set(["key", "type", "correlation id"]),
    attempts: "null",
    order: { column: "t.place", unique: true, isCreatedAt: false },
    unsettled: ofPipeline,
    available: "true",
    scheduledAt: null,
    main: ofPipeline,
    conflicts: null,
    delivered: "false",
    deliveredAt: null,
    markDelivered: "",
    markFailed: null,
    givenUp: null,
    setBack: null,
    unmark: "",
  };
}

/**
 * json accepts more values than jsonb. Such a value is kept as a string, so that the dead letter can always be written.
 */
const HEADERS_JSON = `(case when position(chr(92) || 'u' in t.headers::text) > 0 or t.headers::text ~ '[0-9][eE]'
  then to_jsonb(t.headers::text) else t.headers::jsonb end)`;
