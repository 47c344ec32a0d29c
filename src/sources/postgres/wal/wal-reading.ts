import { RelayError } from "../../../core/errors.ts";
import type { ClaimedEvent } from "../../../ports/queue-store.ts";
import { displayTable, type TableName } from "../../../postgres/identifiers.ts";
import type { LogRow } from "../log/log-kind.ts";
import { columnsOf, type EventParts } from "./event-parts.ts";
import { printLsn } from "./lsn.ts";
import { readMessageEvent } from "./message-reader.ts";
import type { ChangeSink, LogicalMessage, Relation } from "./pgoutput.ts";
import { type EventLimits, RowReader } from "./row-reader.ts";
import { between, type WalPlace, type WalSegment } from "./wal-place.ts";

/** What of the log becomes events. */
export interface WalContent {
  readonly table: WalTable | null;
  /** Of the messages that count; null where none does. */
  readonly prefix: string | null;
  readonly limits: EventLimits;
}

interface WalTable {
  readonly name: TableName;
  readonly parts: EventParts;
  /** All columns that the log shows, as the table has them now. */
  readonly columns: Relation["columns"];
  /** True: rows of a time at which a column had another name are read, because it has its name again. */
  readonly readsFormerNames: boolean;
}

/**
 * Turns changes into rows, from a place on: what lies before it was read earlier and comes again because the server
 * only forgets whole transactions. Every row and message of a transaction counts, whoever it is for, so that the same
 * row always has the same number.
 */
export class WalReading implements ChangeSink {
  readonly #content: WalContent;
  readonly #from: WalPlace;
  readonly #onRow: (row: LogRow<WalSegment>) => void;
  /** Of the tables that count; an error stands for one whose rows cannot be read as events any more. */
  readonly #readers = new Map<number, RowReader | RelayError>();
  #readsFormerNames: boolean;
  /** The transaction that is being read; null between two. */
  #segment: WalSegment | null = null;
  #index = 0;
  /** Rows of this transaction up to here lie before the place. */
  #skippedTo = 0;
  /** Everything before it has arrived, between transactions. */
  #endLsn: bigint;

  constructor(content: WalContent, from: WalPlace, onRow: (row: LogRow<WalSegment>) => void) {
    this.#content = content;
    this.#from = from;
    this.#endLsn = from.segment.lsn;
    this.#onRow = onRow;
    this.#readsFormerNames = content.table?.readsFormerNames ?? false;
  }

  get endLsn(): bigint {
    return this.#endLsn;
  }

  /** Where the reading stands when nothing that was read waits. */
  get head(): WalPlace {
    if (this.#segment !== null && this.#index > this.#skippedTo) return { segment: this.#segment, mark: this.#index };
    const { lsn, timeline } = this.#from.segment;
    return this.#endLsn > lsn ? between(this.#endLsn, timeline) : this.#from;
  }

  /** Inside a transaction it says nothing: the rest of that one is still to come. */
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

  /** Throws COLUMN_MISSING before a row that came without a column, and stands before it. */
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
    const what = `A row of ${displayTable(table.name)} came without ${missing.join(", ")}; it has ${names.join(", ")}`;
    const why = "The column was renamed or dropped, or the publication has a list of columns without it";
    return new RelayError("COLUMN_MISSING", `${what}. ${why}. Nothing is passed over: the reading goes on there`);
  }

  message(message: LogicalMessage): void {
    // Written outside of a transaction it is one by itself: it comes between the others.
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

/** The same columns in the same order, whatever they were called: a rename moves none. */
function isSameForm(then: Relation["columns"], now: Relation["columns"]): boolean {
  return then.length === now.length && then.every(({ typeOid }, at) => typeOid === now[at]?.typeOid);
}
