import { RelayError } from "../core/errors.ts";
import { DEFAULT_LIMITS } from "../core/limits.ts";
import type { ColumnNames } from "../postgres/column-names.ts";
import { displayTable, parseTableName, quoteTable } from "../postgres/identifiers.ts";
import {
  type HandleSession,
  hasCode,
  type Statement,
  sessionOf,
  type TransactionHandle,
} from "../postgres/transaction-handle.ts";
import { columnsOf, eventRow } from "./event-row.ts";
import { insertEvent } from "./insert-event.sql.ts";
import { insertEvents } from "./insert-events.sql.ts";
import type { NewEvent } from "./new-event.ts";
import { type OutboxTable, outboxTableOf, type TableFacts } from "./outbox-table.ts";
import { readTable } from "./read-table.sql.ts";
import { activeTrace, type TraceContext } from "./trace-context.ts";
import { uuidV7 } from "./uuid-v7.ts";

export interface OutboxOptions {
  /** `schema.table`, the one that the relay reads. */
  readonly table: string;
  /** Where the usual names do not fit: the same as the source's `columns`. */
  readonly columns?: ColumnNames;
  /** The relay's own limit, 16 MB: a larger event would be a dead letter. */
  readonly payloadBytesMax?: number;
  /** Ids of events that bring none. */
  readonly newId?: () => string;
  /** The context that the relay's trace continues; the default asks OpenTelemetry for the active span. */
  readonly trace?: () => TraceContext | null | Promise<TraceContext | null>;
}

export interface Outbox {
  /**
   * Writes events in the caller's transaction, in this order and in one statement, and tells how many were new: an id
   * that is there already changes nothing. Rejects with TRANSACTION_MISSING outside a transaction and with EVENT_INVALID
   * for an event that could not be carried; the transaction stays usable after both.
   */
  write(handle: TransactionHandle, events: NewEvent | readonly NewEvent[]): Promise<number>;
}

/** One statement holds no more: what it carries is in memory several times over. */
const EVENTS_MAX = 10_000;
const STATEMENT_BYTES_MAX = 64 * 1024 * 1024;

/** Does nothing by itself: the table is looked at in the first transaction that writes. */
export function createOutbox(options: OutboxOptions): Outbox {
  const name = parseTableName(options.table);
  const limits = {
    payloadBytesMax: options.payloadBytesMax ?? DEFAULT_LIMITS.payloadBytesMax,
    headersMax: DEFAULT_LIMITS.headersMax,
  };
  const newId = options.newId ?? uuidV7;
  const traceOf = options.trace ?? activeTrace();
  // The lock that an insert takes anyway; a server refuses it outside a transaction.
  const probe = `lock table only ${quoteTable(name)} in row exclusive mode`;
  let known: KnownTable | null = null;

  async function write(handle: TransactionHandle, given: NewEvent | readonly NewEvent[]): Promise<number> {
    const session = sessionOf(handle);
    const events: readonly NewEvent[] = Array.isArray(given) ? given : [given as NewEvent];
    if (events.length === 0) return 0;
    if (events.length > EVENTS_MAX) throw tooMany(`${events.length} events`, `${EVENTS_MAX}`);
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
    const [answer] = await session.rows(statement, values).catch(forgetTable);
    if (!session.isStillOpen()) throw endedMeanwhile();
    return Number(answer?.written ?? 0);
  }

  async function look(session: HandleSession): Promise<KnownTable> {
    const [row] = await session.rows(readTable, [name.schema, name.table]);
    if (row === undefined) throw new RelayError("TABLE_MISSING", `The table ${displayTable(name)} does not exist`);
    const facts = JSON.parse(String(row.facts)) as TableFacts;
    return { table: outboxTableOf(name, facts, options.columns ?? {}), statements: new Map() };
  }

  /** The table may have changed since: the next write looks again. */
  function forgetTable(error: unknown): never {
    if (hasCode(error, "42")) known = null;
    throw error;
  }

  return { write };
}

interface KnownTable {
  readonly table: OutboxTable;
  /** By the columns that they fill: few combinations, and bounded all the same. */
  readonly statements: Map<string, Statement>;
}

const STATEMENTS_MAX = 100;

function statementOf(
  statements: KnownTable["statements"],
  table: OutboxTable,
  { columns, isOne }: { readonly columns: readonly string[]; readonly isOne: boolean },
): Statement {
  const key = JSON.stringify([isOne, columns]);
  const made = statements.get(key) ?? (isOne ? insertEvent(table, columns) : insertEvents(table, columns));
  if (statements.size < STATEMENTS_MAX) statements.set(key, made);
  return made;
}

function textOf(value: unknown): string | null {
  if (value == null) return null;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function tooMany(what: string, most: string): RelayError {
  return new RelayError("EVENT_INVALID", `One write has ${what}, more than ${most}: divide it into several writes`);
}

function endedMeanwhile(): RelayError {
  const what = "The transaction ended before the events were written, so they stand alone; await every statement";
  return new RelayError("TRANSACTION_MISSING", what);
}
