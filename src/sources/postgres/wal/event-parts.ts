import { ColumnFinder } from "../../../postgres/column-finder.ts";
import {
  CANDIDATES,
  type ColumnInfo,
  type ColumnNames,
  isJson,
  isText,
  isTimestamp,
} from "../../../postgres/column-names.ts";
import type { TableName } from "../../../postgres/identifiers.ts";

/** `debezium` names columns, key and headers like Debezium's outbox event router. */
export type WalPreset = "plain" | "debezium";

/**
 * Which column holds which part of the event, by name: the log describes the columns again whenever the table changes.
 */
export interface EventParts {
  readonly id: string;
  readonly type: string;
  readonly payload: string;
  readonly key: string | null;
  readonly headers: string | null;
  readonly correlationId: string | null;
  readonly createdAt: string | null;
  readonly traceparent: string | null;
  readonly tracestate: string | null;
  /** The payload is printed as hexadecimal digits. */
  readonly isBytea: boolean;
  /** Columns that are sent as headers. */
  readonly extras: readonly { readonly column: string; readonly header: string }[];
  /** The event's id is also sent as the header `id`. */
  readonly hasIdHeader: boolean;
}

/** Parses `column` or `column:header`, as in Debezium's `table.fields.additional.placement`. */
function extraOf(written: string): { readonly column: string; readonly header: string } {
  const colon = written.indexOf(":");
  return colon < 0
    ? { column: written, header: written }
    : { column: written.slice(0, colon), header: written.slice(colon + 1) };
}

/** The columns that define the event. Correlation id and trace are optional, so they may disappear. */
export function columnsOf({ createdAt, extras, headers, id, key, payload, type }: EventParts): readonly string[] {
  const named = [id, type, key, payload, headers, createdAt];
  return [...named.filter((name) => name !== null), ...extras.map(({ column }) => column)];
}

/**
 * The column names that the table was read by so far: a name that is gone is then reported as missing instead of being
 * left out.
 */
export function keptNames(names: ColumnNames, before: EventParts | undefined): ColumnNames {
  if (before === undefined) return names;
  const { createdAt, headers, id, key, payload, type } = before;
  const found = Object.entries({ id, type, key, payload, headers, createdAt });
  return { ...(Object.fromEntries(found.filter(([, name]) => name !== null)) as ColumnNames), ...names };
}

/** Finds the event's columns. Throws COLUMN_MISSING or COLUMN_MISTYPED. */
export function eventPartsOf(
  table: TableName,
  columns: readonly ColumnInfo[],
  names: ColumnNames,
  preset: WalPreset,
  headerColumns: readonly string[],
): EventParts {
  const finder = new ColumnFinder(table, columns);
  const isDebezium = preset === "debezium";
  const optional = (role: string, named: string | null | undefined, candidates: readonly string[]) =>
    finder.find({ role, named, candidates })?.name ?? null;
  const text = (name: "traceparent" | "tracestate") =>
    finder.find({ role: `the ${name}`, candidates: CANDIDATES[name], fits: isText, type: "a text" })?.name ?? null;
  const types = isDebezium ? ["type"] : CANDIDATES.type;
  const keys = isDebezium ? ["aggregateid"] : CANDIDATES.key;
  const times = isDebezium ? ["timestamp", ...CANDIDATES.createdAt] : CANDIDATES.createdAt;
  const payload = finder.require({ role: "the payload", named: names.payload, candidates: CANDIDATES.payload });
  const extras = headerColumns.map(extraOf);
  if (isDebezium) extras.unshift({ column: "aggregatetype", header: "aggregatetype" });
  for (const { column } of extras) finder.require({ role: "a header", named: column, candidates: [] });
  return {
    id: finder.require({ role: "the event's id", named: names.id, candidates: CANDIDATES.id }).name,
    type: finder.require({ role: "the type", named: names.type, candidates: types }).name,
    payload: payload.name,
    key: optional("the key", names.key, keys),
    headers:
      finder.find({
        role: "the headers",
        named: names.headers,
        candidates: CANDIDATES.headers,
        fits: isJson,
        type: "json or jsonb",
      })?.name ?? null,
    correlationId: optional("the correlation id", names.correlationId, CANDIDATES.correlationId),
    createdAt:
      finder.find({
        role: "the time of creation",
        named: names.createdAt,
        candidates: times,
        fits: isTimestamp,
        type: "a timestamp",
      })?.name ?? null,
    traceparent: text("traceparent"),
    tracestate: text("tracestate"),
    isBytea: payload.baseType === "bytea",
    extras,
    hasIdHeader: isDebezium,
  };
}
