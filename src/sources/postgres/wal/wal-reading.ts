import { RelayError } from "../../../core/errors.ts";
import type { ClaimedEvent } from "../../../ports/queue-store.ts";
import { displayTable, type TableName } from "../../../postgres/identifiers.ts";
import type { LogRow } from "../log/log-kind.ts";
import { columnsOf, type EventParts } from "./event-parts.ts";
import { readMessageEvent } from "./message-reader.ts";
import type { ChangeSink, LogicalMessage, Relation } from "./pgoutput.ts";
import { type EventLimits, RowReader } from "./row-reader.ts";
import { between, printLsn, type WalPosition, type WalSegment } from "./wal-position.ts";

/** Which parts of the log become events. */
export interface WalContent {
  readonly table: WalTable | null;
  /** The prefix of the messages that are events; null for none. */
  readonly prefix: string | null;
  readonly limits: EventLimits;
}

interface WalTable {
  readonly name: TableName;
  readonly parts: EventParts;
  /** All columns that the log shows, as the table has them now. */
  readonly columns: Relation["columns"];
  /** True: read rows from a time when a column had another name, because it has its old name again. */
  readonly readsFormerNames: boolean;
}

/**
 * Turns changes into rows, beginning at a position. Changes before it were read earlier; they appear again because the
 * server sends whole transactions. Every row and message of a transaction is counted, whatever its table, so that the
 * same row always has the same number.
 */
export class WalReading implements ChangeSink {
  readonly #content: WalContent;
  readonly #from: WalPosition;
  readonly #onRow: (row: LogRow<WalSegment>) => void;
  /** The readers of our tables; an error stands for a table whose rows can no longer be read as events. */
  readonly #readers = new Map<number, RowReader | RelayError>();
  #readsFormerNames: boolean;
  /** The current transaction; null between two. */
  #segment: WalSegment | null = null;
  #index = 0;
  /** Rows of this transaction up to this number lie before the start position. */
  #skippedTo = 0;
  /** Everything before it has arrived; always between transactions. */
  #endLsn: bigint;

  constructor(content: WalContent, from: WalPosition, onRow: (row: LogRow<WalSegment>) => void) {
    this.#content = content;
    this.#from = from;
    this.#endLsn = from.segment.lsn;
    this.#onRow = onRow;
    this.#readsFormerNames = content.table?.readsFormerNames ?? false;
  }

  get endLsn(): bigint {
    return this.#endLsn;
  }

  /** The position after everything that was read. */
  get head(): WalPosition {
    if (this.#segment !== null && this.#index > this.#skippedTo) return { segment: this.#segment, mark: this.#index };
    const { lsn, timeline } = this.#from.segment;
    return this.#endLsn > lsn ? between(this.#endLsn, timeline) : this.#from;
  }

  /** Ignored inside a transaction: the rest of it has yet to arrive. */
  reached(endLsn: bigint): void {
    if (this.#segment === null && endLsn > this.#endLsn) this.#endLsn = endLsn;
  }

  begin(lsn: bigint, committedAtMs: number | null): void {
    const { mark, segment } = this.#from;
    this.#segment = { lsn, timeline: segment.timeline, committedAtMs };
    this.#index = 0;
    if (lsn < segment.lsn) this.#skippedTo = Number.POSITIVE_INFINITY;
    else this.#skippedTo = lsn === segment.lsn ? mark : 0;
  }

  commit(endLsn: bigint): void {
    this.#segment = null;
    this.#skippedTo = 0;
    this.reached(endLsn);
  }

  relation(relation: Relation): void {
    const { table } = this.#content;
    const isOurs = table !== null && relation.schema === table.name.schema && relation.table === table.name.table;
    if (isOurs) this.#readers.set(relation.id, this.#readerFor(relation, table));
    else this.#readers.delete(relation.id);
  }

  /** Throws COLUMN_MISSING at a row that lacks a column, and stays before that row. */
  insert(relationId: number, buffer: Buffer, at: number): void {
    const isPassed = this.#index < this.#skippedTo;
    const reader = isPassed ? undefined : this.#readers.get(relationId);
    if (reader instanceof RelayError) throw reader;
    this.#index += 1;
    if (reader !== undefined) this.#add(reader.read(buffer, at, this.#placeName));
  }

  #readerFor(relation: Relation, table: WalTable): RowReader | RelayError {
    const { limits } = this.#content;
    const names = relation.columns.map(({ name }) => name);
    const missing = columnsOf(table.parts).filter((name) => !names.includes(name));
    if (missing.length === 0) {
      this.#readsFormerNames = false;
      return new RowReader(relation, table.parts, limits);
    }
    if (this.#readsFormerNames && isSameForm(relation.columns, table.columns)) {
      return new RowReader({ ...relation, columns: table.columns }, table.parts, limits);
    }
    const what = `A row of ${displayTable(table.name)} lacks ${missing.join(", ")}; it has ${names.join(", ")}`;
    const why = "The column was renamed or dropped, or the publication has a column list without it";
    return new RelayError(
      "COLUMN_MISSING",
      `${what}. ${why}. No row is skipped: the reading continues there once this is fixed`,
    );
  }

  message(message: LogicalMessage): void {
    // A message written outside a transaction is a transaction by itself and appears between the others.
    const isAlone = this.#segment === null;
    if (isAlone) this.begin(message.lsn, null);
    this.#index += 1;
    if (this.#index > this.#skippedTo && message.prefix === this.#content.prefix) {
      this.#add(readMessageEvent(message.content, this.#placeName(), this.#content.limits));
    }
    if (isAlone) this.commit(message.lsn + 1n);
  }

  readonly #placeName = (): string => `${printLsn(this.#segment?.lsn ?? 0n)}:${this.#index}`;

  #add(event: ClaimedEvent): void {
    this.#onRow({ segment: this.#segment!, mark: this.#index, event });
  }
}

/** The same column types in the same order, whatever the names: a rename moves no column. */
function isSameForm(then: Relation["columns"], now: Relation["columns"]): boolean {
  return then.length === now.length && then.every(({ typeOid }, at) => typeOid === now[at]?.typeOid);
}
