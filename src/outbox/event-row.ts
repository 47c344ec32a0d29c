import type { EventHeaders } from "../core/event.ts";
import { isJson } from "../postgres/column-names.ts";
import { displayTable } from "../postgres/identifiers.ts";
import { checkedHeaders, checkedText, type EventLimits, invalid, payloadValue } from "./event-values.ts";
import type { NewEvent } from "./new-event.ts";
import type { OutboxTable, TableColumn } from "./outbox-table.ts";
import type { TraceContext } from "./trace-context.ts";

/** Values by column name. */
type EventRow = Record<string, unknown>;

interface RowContext {
  readonly table: OutboxTable;
  readonly limits: EventLimits;
  readonly newId: () => string;
  /** Context of the active span; an event's own has priority. */
  readonly trace: TraceContext | null;
}

/** Builds the row of an event. Pure except for a new id. Throws EVENT_INVALID. */
export function eventRow(event: NewEvent, context: RowContext): EventRow {
  const { table } = context;
  if (typeof event !== "object" || event === null) throw invalid(event, "it is not an object");
  const type = checkedText(event, "type", event.type, table.type ?? undefined);
  if (type === "") throw invalid(event, "type is empty");
  const row: EventRow = {};
  const put = (column: TableColumn, value: unknown) => {
    row[column.name] = value;
  };
  if (table.type !== null) put(table.type, type);
  putId(event, context, put);
  if (table.intent !== null && table.intent !== table.payload) put(table.intent, type);
  const content = table.intent === table.payload ? { ...event, payload: intentOf(event, type, table) } : event;
  put(table.payload, payloadValue(content, table.payload, context.limits));
  if (event.key != null) put(place(event, "key", table.key, table), checkedText(event, "key", event.key, table.key!));
  putHeaders(event, context, put);
  for (const [name, value] of Object.entries(event.columns ?? {})) put(further(event, table, name, row), value);
  return row;
}

type Put = (column: TableColumn, value: unknown) => void;

function putId(event: NewEvent, { table: { id }, newId }: RowContext, put: Put): void {
  if (!id.isSequence) put(id, checkedText(event, "id", event.id ?? newId(), id));
  else if (event.id !== undefined) throw invalid(event, `it has an id, but the database generates ids in ${id.name}`);
}

/** Correlation id and trace context go to columns of their own, or to the headers. */
function putHeaders(event: NewEvent, { table, limits, trace }: RowContext, put: Put): void {
  const headers: Record<string, string> = { ...checkedHeaders(event, event.headers ?? {}, limits) };
  if (event.correlationId != null) {
    const id = checkedText(event, "correlationId", event.correlationId, table.correlationId ?? undefined);
    if (table.correlationId !== null) put(table.correlationId, id);
    else headers["correlation-id"] = id;
  }
  const own =
    event.traceparent === undefined ? trace : { traceparent: event.traceparent, tracestate: event.tracestate };
  if (own !== null && !hasTrace(headers)) putTrace(event, own, table, { headers, put });
  if (Object.keys(headers).length > 0) put(place(event, "headers", table.headers, table), headers);
  else if (table.headers?.isRequired) put(table.headers, {});
}

function putTrace(
  event: NewEvent,
  { traceparent, tracestate }: TraceContext,
  table: OutboxTable,
  { headers, put }: { readonly headers: Record<string, string>; readonly put: Put },
): void {
  checkedText(event, "traceparent", traceparent);
  if (tracestate !== undefined) checkedText(event, "tracestate", tracestate);
  if (table.headers !== null) {
    headers.traceparent = traceparent;
    if (tracestate !== undefined) headers.tracestate = tracestate;
    return;
  }
  // The active span's context is optional, so a table without a column for it is no error.
  if (table.traceparent === null && event.traceparent === undefined) return;
  put(place(event, "traceparent", table.traceparent, table), traceparent);
  if (tracestate !== undefined && table.tracestate !== null) put(table.tracestate, tracestate);
}

function hasTrace(headers: EventHeaders): boolean {
  return Object.keys(headers).some((name) => name.toLowerCase() === "traceparent");
}

/** A value from the application must be stored: without a column for it the event is refused. */
function place(event: NewEvent, what: string, column: TableColumn | null, table: OutboxTable): TableColumn {
  if (column !== null) return column;
  throw invalid(event, `it has ${what}, and ${displayTable(table.name)} has no column for it`);
}

/** For tables whose intent contains the type and the payload. */
function intentOf(event: NewEvent, type: string, { payload: column }: OutboxTable): object {
  const { payload } = event;
  if (typeof payload !== "object" || payload === null || Array.isArray(payload) || payload instanceof Uint8Array) {
    throw invalid(event, `its payload must be an object: ${column.name} stores it together with the type`);
  }
  if ("type" in payload && payload.type !== type) {
    throw invalid(event, "its payload has another type than the event, but the intent can store only one");
  }
  return { type, ...payload };
}

function further(event: NewEvent, table: OutboxTable, name: string, row: EventRow): TableColumn {
  const column = table.columns.get(name);
  if (column === undefined)
    throw invalid(event, `columns names ${name}, which ${displayTable(table.name)} does not have`);
  if (column.isGenerated) throw invalid(event, `columns names ${name}, which the database generates`);
  if (Object.hasOwn(row, name)) throw invalid(event, `columns names ${name}, which the event itself fills`);
  if (isJson(column))
    throw invalid(event, `columns names ${name}, which is ${column.baseType}: only texts and numbers are supported`);
  return column;
}

/** The columns that any of the rows fills. Throws EVENT_INVALID when a row lacks a required value. */
export function columnsOf(table: OutboxTable, events: readonly NewEvent[], rows: readonly EventRow[]): string[] {
  const used = new Set(rows.flatMap((row) => Object.keys(row)));
  for (const column of table.columns.values()) {
    if (!column.isRequired || table.fixed.has(column.name)) continue;
    if (column.hasDefault && !used.has(column.name)) continue;
    const lacking = rows.findIndex((row) => row[column.name] == null);
    if (lacking < 0) continue;
    const where = displayTable(table.name);
    throw invalid(events[lacking]!, `it has no value for ${column.name}, which ${where} requires`);
  }
  return [...used];
}
