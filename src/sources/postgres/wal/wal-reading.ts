import type { ClaimedEvent } from "../../../ports/queue-store.ts";
import type { TableName } from "../../../postgres/identifiers.ts";
import type { LogRow } from "../log/log-kind.ts";
import type { EventParts } from "./event-parts.ts";
import { printLsn } from "./lsn.ts";
import { readMessageEvent } from "./message-reader.ts";
import type { ChangeSink, LogicalMessage, Relation } from "./pgoutput.ts";
import { type EventLimits, RowReader } from "./row-reader.ts";
import { between, type WalPlace, type WalSegment } from "./wal-place.ts";

/** What of the log becomes events. */
export interface WalContent {
  readonly table: { readonly name: TableName; readonly parts: EventParts } | null;
  /** Of the messages that count; null where none does. */
  readonly prefix: string | null;
  readonly limits: EventLimits;
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
  readonly #readers = new Map<number, RowReader>();
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
    const { limits, table } = this.#content;
    const isOurs = table !== null && relation.schema === table.name.schema && relation.table === table.name.table;
    if (isOurs) this.#readers.set(relation.id, new RowReader(relation, table.parts, limits));
    else this.#readers.delete(relation.id);
  }

  insert(relationId: number, buffer: Buffer, at: number): void {
    this.#index += 1;
    if (this.#index <= this.#skippedTo) return;
    const reader = this.#readers.get(relationId);
    if (reader !== undefined) this.#add(reader.read(buffer, at, this.#placeName));
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
