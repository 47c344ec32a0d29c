import { RelayError } from "../core/errors.ts";
import { HEADERS_MAX, PAYLOAD_BYTES_MAX } from "../core/limits.ts";
import type { ColumnNames } from "../postgres/column-names.ts";
import { displayTable, parseTableName, quoteTable } from "../postgres/identifiers.ts";
import {
  type HandleSession,
  hasCode,
  type Statement,
  sessionOf,
  type TransactionHandle,
} from "../postgres/transaction-handle.ts";
import type { AnyEvents, EventOf } from "./event-map.ts";
import { columnsOf, eventRow } from "./event-row.ts";
import { checkSchemas, type EventSchemas, validated } from "./event-schemas.ts";
import type { NewEvent } from "./new-event.ts";
import { insertEventSql, insertEventsSql, readTableSql } from "./outbox.sql.ts";
import { type OutboxTable, outboxTableOf, type TableFacts } from "./outbox-table.ts";
import { activeTrace, type TraceContext } from "./trace-context.ts";
import { uuidV7 } from "./uuid-v7.ts";

/** Options of `createOutbox`. */
export interface OutboxOptions<Events extends object = AnyEvents> {
  /** `schema.table`, the table that the relay reads. */
  readonly table: string;
  /** Non-standard column names, as in the source's `columns`. */
  readonly columns?: ColumnNames;
  /** The relay's own limit, 16 MB: a larger event would become a dead letter. */
  readonly payloadBytesMax?: number;
  /** Generates ids of events without one. */
  readonly newId?: () => string;
  /** Schemas that validate payloads by type before they are written. The returned value is written. */
  readonly schemas?: EventSchemas<Events>;
  /** The trace context that the relay continues; by default that of OpenTelemetry's active span. */
  readonly trace?: () => TraceContext | null | Promise<TraceContext | null>;
}

/** Writes events in transactions of the application. */
export interface Outbox<Events extends object = AnyEvents> {
  /**
   * Writes events in the caller's transaction, in this order and in one statement, and returns how many were new: an id
   * that exists changes nothing. Rejects with TRANSACTION_MISSING outside a transaction and with EVENT_INVALID for an
   * event that the relay could not carry; the transaction stays usable after both.
   */
  write(handle: TransactionHandle, events: EventOf<Events> | readonly EventOf<Events>[]): Promise<number>;
}

/** Limit of one statement: its content is in memory several times. */
const EVENTS_MAX = 10_000;
const STATEMENT_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Has no effect by itself: the first transaction that writes reads the table's catalogue entry.
 * `createOutbox<ShopEvents>(..)` accepts only the types of that map, each with its payload.
 */
export function createOutbox<Events extends object = AnyEvents>(options: OutboxOptions<Events>): Outbox<Events> {
  const name = parseTableName(options.table);
  const schemas = checkSchemas(options.schemas);
  const limits = { payloadBytesMax: options.payloadBytesMax ?? PAYLOAD_BYTES_MAX, headersMax: HEADERS_MAX };
  const newId = options.newId ?? uuidV7;
  const traceOf = options.trace ?? activeTrace();
  // The lock that an insert acquires anyway; the server refuses it outside a transaction.
  const probe = `lock table only ${quoteTable(name)} in row exclusive mode`;
  let known: KnownTable | null = null;

  async function write(handle: TransactionHandle, given: NewEvent | readonly NewEvent[]): Promise<number> {
    const session = sessionOf(handle);
    const list: readonly NewEvent[] = Array.isArray(given) ? given : [given as NewEvent];
    if (list.length === 0) return 0;
    if (list.length > EVENTS_MAX) throw tooMany(`${list.length} events`, `${EVENTS_MAX}`);
    const events = await validated(list, schemas);
    const trace = await traceOf();
    await session.requireTransaction(probe);
    known ??= await look(session);
    const { table, statements } = known;
    const rows = events.map((event) => eventRow(event, { table, limits, newId, trace }));
    const columns = columnsOf(table, events, rows);
    const isOne = rows.length === 1;
    const values = isOne ? columns.map((column) => textOf(rows[0]?.[column])) : [JSON.stringify(rows)];
    if ((values[0]?.length ?? 0) > STATEMENT_BYTES_MAX) throw tooMany("too many bytes", `${STATEMENT_BYTES_MAX}`);
    const statement = statementOf(statements, table, { columns, isOne });
    const [written] = await session.column(statement, values).catch(forgetTable);
    if (!session.isStillOpen()) throw endedMeanwhile();
    return Number(written ?? 0);
  }

  async function look(session: HandleSession): Promise<KnownTable> {
    const [read] = await session.column(readTableSql, [name.schema, name.table]);
    if (read === undefined) throw new RelayError("TABLE_MISSING", `The table ${displayTable(name)} does not exist`);
    const facts = JSON.parse(String(read)) as TableFacts;
    return { table: outboxTableOf(name, facts, options.columns ?? {}), statements: new Map() };
  }

  /** The table may have changed since: the next write reads the catalogue again. */
  function forgetTable(error: unknown): never {
    if (hasCode(error, "42")) known = null;
    throw error;
  }

  return { write };
}

interface KnownTable {
  readonly table: OutboxTable;
  /** By the columns that they fill: few combinations in practice, and bounded. */
  readonly statements: Map<string, Statement>;
}

const STATEMENTS_MAX = 100;

function statementOf(
  statements: KnownTable["statements"],
  table: OutboxTable,
  { columns, isOne }: { readonly columns: readonly string[]; readonly isOne: boolean },
): Statement {
  const key = JSON.stringify([isOne, columns]);
  const made = statements.get(key) ?? (isOne ? insertEventSql(table, columns) : insertEventsSql(table, columns));
  if (statements.size < STATEMENTS_MAX) statements.set(key, made);
  return made;
}

function textOf(value: unknown): string | null {
  if (value == null) return null;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function tooMany(what: string, most: string): RelayError {
  return new RelayError("EVENT_INVALID", `One write has ${what}; the maximum is ${most}: split it into several writes`);
}

function endedMeanwhile(): RelayError {
  const what =
    "The transaction ended while the events were written, so they may be stored without its other changes; await every statement";
  return new RelayError("TRANSACTION_MISSING", what);
}
