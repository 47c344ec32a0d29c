import { ColumnFinder } from "../../postgres/column-finder.ts";
import {
  CANDIDATES,
  type ColumnInfo,
  type ColumnNames,
  isInteger,
  isJson,
  isText,
  isTimestamp,
} from "../../postgres/column-names.ts";
import type { EventTable } from "../../postgres/event-table.ts";
import { quoteIdentifier, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import { type KeyFacts, requireUniqueId } from "../../postgres/unique-id.ts";
import type { NullHeaders } from "./headers.ts";
import { type RowState, rowStateOf } from "./row-state.ts";

type Preset = "flag" | "worker" | "intent" | "openoutbox";

/** How the payload is read. `computed`: only a conversion shows its size, so it runs once per row. */
interface PayloadShape {
  readonly kind: "bytea" | "text" | "computed";
  /** The stored column, for its stored size. */
  readonly column: string;
  /** What is sent, as bytea or text. */
  readonly body: string;
  /** A row without a payload is not a valid event. Absent: its event has an empty payload. */
  readonly isRequired?: true;
}

/** The columns of claims that are stored in the rows, where other relays see them. */
interface ClaimShape {
  /** True for a row that any relay has claimed. */
  readonly claimed: string;
  /** True for a row that this instance has claimed. */
  readonly isOurs: (owner: string) => string;
  /** Assignments to the hold `h` of a dead row that was made pending again. */
  readonly revived: string;
  /** The columns that decide which pipeline reads a row. */
  readonly matched: string;
  /** Whether an index returns the pending rows in the order of a claim. */
  readonly hasOrderIndex: boolean;
}

/**
 * One table of events, as SQL fragments over its alias `t` with every name quoted. It is computed once from the
 * catalog; all statements are built from it, and none inspects the columns itself.
 */
export interface TableShape extends EventTable, RowState {
  readonly preset: Preset;
  readonly payload: PayloadShape;
  /** The id and key as events carry them. */
  readonly idText: string;
  readonly keyText: string;
  readonly correlationText: string;
  /** As text, null where there are none. */
  readonly headersText: string;
  readonly createdText: string;
  /**
   * Headers that have columns of their own, one value per line: the two of the W3C trace context, then `causation-id`
   * and `content-type`, which only queues have; null without such columns.
   */
  readonly traceText: string;
  /** The parts that can have any size: a number or a UUID need not be measured. */
  readonly unbounded: ReadonlySet<"key" | "type" | "correlation id">;
  /** Failures counted in the row itself; `null` without such a column. */
  readonly attempts: string;
  /** The column to order by, whether it is unique, and the index's second column where it matters. */
  readonly order: {
    readonly column: string;
    readonly unique: boolean;
    readonly isCreatedAt: boolean;
    readonly second?: string;
  };
  readonly nullHeaders?: NullHeaders;
  /** The table has no key, and is read in its order by one lane. Absent: lanes share the rows by key, or by id. */
  readonly isSerial?: true;
  /** Absent: claims live in the memory of their owner. */
  readonly claims?: ClaimShape;
}

/** The columns of the index that returns the rows in order. */
export function orderColumns({ order }: Pick<TableShape, "order">): readonly string[] {
  return order.second === undefined ? [order.column] : [order.column, order.second];
}

/** True for a row that is still to be delivered, claimed or not, and is not dead. */
export function undelivered({ claims, main, unsettled }: TableShape): string {
  return claims === undefined ? unsettled : `(${main} or ${claims.claimed})`;
}

/** What the catalog says about a table. */
export interface TableFacts {
  readonly name: TableName;
  readonly columns: readonly ColumnInfo[];
  /** The table's indexes, as the catalog prints them. */
  readonly indexes?: readonly string[];
  /** In a database with encoding SQL_ASCII, text can contain bytes that are not UTF-8. */
  readonly serverEncoding?: string;
  /** Absent: not read, and the id counts as unique. */
  readonly keys?: KeyFacts;
}

const columnOf = ({ name }: ColumnInfo): string => `t.${quoteIdentifier(name)}`;

/** Pure: the same facts give the same shape. Throws COLUMN_MISSING, COLUMN_MISTYPED or ID_NOT_UNIQUE. */
export function shapeOf(facts: TableFacts, names: ColumnNames = {}): TableShape {
  const finder = new ColumnFinder(facts.name, facts.columns);
  const { event, id, usesIntent, attempts, createdAt } = eventShapeOf(finder, facts, names);
  if (facts.keys !== undefined) requireUniqueId(facts.name, id, facts.keys);
  const rowState = rowStateOf(finder, names, { attempts, createdAt, indexes: facts.indexes ?? [] });
  const preset = rowState.givenUp !== null ? "worker" : usesIntent ? "intent" : "flag";
  const isSerial = preset === "worker" && event.keyText === "null" && names.key === undefined;
  const traceText = withHeaderColumns(finder, names, event.traceText);
  return { ...event, traceText, ...rowState, preset, ...(isSerial ? { isSerial } : {}) };
}

/** Everything but a row's state: all that a log needs, where nothing is marked. */
export function eventShapeOf(finder: ColumnFinder, facts: TableFacts, names: ColumnNames) {
  const id = finder.require({ role: "the event's id", named: names.id, candidates: CANDIDATES.id });
  const key = finder.find({ role: "the key", named: names.key, candidates: CANDIDATES.key });
  const headers = finder.find({
    role: "the headers",
    named: names.headers,
    candidates: CANDIDATES.headers,
    fits: isJson,
    type: "json or jsonb",
  });
  const correlation = finder.find({
    role: "the correlation id",
    named: names.correlationId,
    candidates: CANDIDATES.correlationId,
  });
  const createdAt = findCreatedAt(finder, names);
  const intent = finder.find({ role: "the intent", candidates: CANDIDATES.intent });
  const { usesIntent, ...content } = contentOf(finder, names, intent, facts.serverEncoding === "SQL_ASCII");
  const attempts = findAttempts(finder, names);
  const unbounded = new Set<"key" | "type" | "correlation id">(["type"]);
  if (key && isText(key) && !key.isEnum) unbounded.add("key");
  if (correlation && isText(correlation) && !correlation.isEnum) unbounded.add("correlation id");
  const event = {
    name: facts.name,
    quotedName: quoteTable(facts.name),
    id: columnOf(id),
    idType: id.castType,
    idText: textOf(id),
    key: key ? `${columnOf(key)}::text` : "null::text",
    keyText: key ? textOf(key) : "null",
    ...content,
    headersText: headers ? `${columnOf(headers)}::text` : "null",
    headersJson: headers ? headersJson(headers) : "null::jsonb",
    correlationId: correlation ? `${columnOf(correlation)}::text` : "null::text",
    correlationText: correlation ? textOf(correlation) : "null",
    traceText: traceOf(finder),
    unbounded,
    createdText: createdAt ? `${columnOf(createdAt)}::text` : "null",
    createdAt: createdAt ? `${columnOf(createdAt)}::timestamptz` : "null::timestamptz",
    attempts: attempts ? columnOf(attempts) : "null",
    order: orderOf(finder, names, id, createdAt),
  } satisfies Omit<TableShape, keyof RowState | "preset">;
  return { event, id, usesIntent, attempts, createdAt };
}

function traceOf(finder: ColumnFinder): string {
  const find = (name: "traceparent" | "tracestate") =>
    finder.find({ role: `the ${name}`, candidates: CANDIDATES[name], fits: isText, type: "a text" });
  const parent = find("traceparent");
  const state = find("tracestate");
  if (parent === null) return "null";
  return state === null ? textOf(parent) : `${textOf(parent)} || coalesce(chr(10) || ${textOf(state)}, '')`;
}

/** Adds the columns of further headers to the trace's. A line end would begin the next value. */
function withHeaderColumns(finder: ColumnFinder, names: ColumnNames, traceText: string): string {
  const causation = finder.find({
    role: "the causation id",
    named: names.causationId,
    candidates: CANDIDATES.causationId,
  });
  const contentType = finder.find({
    role: "the content type",
    named: names.contentType,
    candidates: CANDIDATES.contentType,
    fits: isText,
    type: "a text",
  });
  if (causation === null && contentType === null) return traceText;
  const line = (column: ColumnInfo | null) =>
    column === null ? "''" : `coalesce(translate(${columnOf(column)}::text, E'\\r\\n', ''), '')`;
  const part = (number: number) => `split_part(coalesce(${traceText}, ''), chr(10), ${number})`;
  // A trace without a state has one line.
  const trace = traceText === "null" ? "chr(10)" : `${part(1)} || chr(10) || ${part(2)}`;
  return `${trace} || chr(10) || ${line(causation)} || chr(10) || ${line(contentType)}`;
}

function findCreatedAt(finder: ColumnFinder, names: ColumnNames): ColumnInfo | null {
  return finder.find(
    {
      role: "the time of creation",
      named: names.createdAt,
      candidates: CANDIDATES.createdAt,
      fits: isTimestamp,
      type: "a timestamp",
    },
    "strict",
  );
}

function findAttempts(finder: ColumnFinder, names: ColumnNames): ColumnInfo | null {
  return finder.find({
    role: "the attempts",
    named: names.attempts,
    candidates: CANDIDATES.attempts,
    fits: isInteger,
    type: "an integer",
  });
}

/** An intent column replaces a missing type or payload column. */
function contentOf(finder: ColumnFinder, names: ColumnNames, intent: ColumnInfo | null, isAscii: boolean) {
  const type = finder.find({ role: "the type", named: names.type, candidates: CANDIDATES.type });
  const payload = finder.find({ role: "the payload", named: names.payload, candidates: CANDIDATES.payload }) ?? intent;
  if (!type && !intent) throw finder.missing("the type", CANDIDATES.type);
  if (!payload) throw finder.missing("the payload", CANDIDATES.payload);
  const typeText = type ? `${columnOf(type)}::text` : intentType(intent!);
  return {
    typeColumn: type !== null && isText(type) && !type.isEnum ? columnOf(type) : null,
    // Compared byte by byte: a user's collation may treat different types as equal, or not support LIKE.
    eventType: `coalesce(${typeText}, '') collate "C"`,
    payload: payloadShape(payload, isAscii),
    payloadBytes: `coalesce(${payloadBytes(payload, isAscii)}, ''::bytea)`,
    usesIntent: type === null || payload === intent,
  };
}

/** `{"type": "NotifyUser", ..}`, `{"NotifyUser": {..}}` or `"NotifyUser"`. */
function intentType(intent: ColumnInfo): string {
  const column = columnOf(intent);
  if (!isJson(intent)) return `${column}::text`;
  const json = intent.baseType;
  return `(case ${json}_typeof(${column})
    when 'object' then coalesce(${column} ->> 'type', (select k from ${json}_object_keys(${column}) k limit 1))
    when 'string' then ${column} #>> '{}' end)`;
}

function payloadShape(payload: ColumnInfo, isAscii: boolean): PayloadShape {
  const column = columnOf(payload);
  if (payload.baseType === "bytea") return { kind: "bytea", column, body: column };
  if (isAscii) return { kind: "bytea", column, body: payloadBytes(payload, isAscii) };
  const isPlain = payload.baseType === "text" || payload.baseType === "character varying";
  return { kind: isPlain ? "text" : "computed", column, body: `${column}::text` };
}

function payloadBytes(payload: ColumnInfo, isAscii: boolean): string {
  const column = columnOf(payload);
  if (payload.baseType === "bytea") return column;
  // Converting to SQL_ASCII returns the bytes unchanged.
  return `convert_to(${column}::text, '${isAscii ? "SQL_ASCII" : "UTF8"}')`;
}

/**
 * json accepts more values than jsonb. Such a value is kept as a string, so that the dead letter can always be written.
 */
function headersJson(headers: ColumnInfo): string {
  const column = columnOf(headers);
  if (headers.baseType === "jsonb") return `${column}::jsonb`;
  const isRisky = `position(chr(92) || 'u' in ${column}::text) > 0 or ${column}::text ~ '[0-9][eE]'`;
  return `(case when ${isRisky} then to_jsonb(${column}::text) else ${column}::jsonb end)`;
}

function orderOf(finder: ColumnFinder, names: ColumnNames, id: ColumnInfo, createdAt: ColumnInfo | null) {
  const chosen =
    names.order === undefined
      ? finder.first((column) => column.isSequence && isInteger(column))
      : finder.require({ role: "the order", named: names.order, candidates: [] });
  if (chosen) {
    const unique = chosen.isSequence || chosen === id;
    return { column: columnOf(chosen), unique, isCreatedAt: chosen === createdAt };
  }
  if (!createdAt) throw finder.missing("the order", ["an identity column", ...CANDIDATES.createdAt]);
  return { column: columnOf(createdAt), unique: false, isCreatedAt: true };
}

/** The server prints these types the same with and without a cast, and a cast costs time per row. */
const PRINTED_AS_TEXT = new Set(["uuid", "smallint", "integer", "bigint", "text", "character varying"]);

function textOf(column: ColumnInfo): string {
  return PRINTED_AS_TEXT.has(column.baseType) && !isDomain(column) ? columnOf(column) : `${columnOf(column)}::text`;
}

function isDomain({ baseType, castType }: ColumnInfo): boolean {
  return baseType !== castType;
}
