import { batchOfNote } from "./ledger-record.ts";

/** A record batch as the client reads it from a fetch. */
export interface FetchedBatch {
  readonly firstOffset: bigint;
  readonly lastOffsetDelta: number;
  readonly attributes: number;
  readonly producerId: bigint;
  readonly records: readonly {
    readonly offsetDelta: number;
    readonly key: Buffer | null;
    readonly value: Buffer | null;
  }[];
}

interface Note {
  readonly offset: bigint;
  readonly batch: bigint;
  readonly value: Buffer;
}

const NOTES_BYTES_MAX = 64 * 1024 * 1024;
const IS_TRANSACTIONAL = 1 << 4;
const IS_CONTROL = 1 << 5;
const ABORT_MARKER = 0;
const COMMIT_MARKER = 1;

/**
 * Finds a lane's committed notes in a partition that is read from its end in windows, each of them forwards. A record
 * is committed when the next marker of its producer says so; that marker may stand in a window that was read before.
 *
 * It keeps a ring of notes at most, whatever else is in the partition, and no more of them than fit into memory: to
 * halt the lane is better than to end the process.
 */
export class LedgerTail {
  readonly #prefix: Buffer;
  readonly #ringSize: number;
  readonly #after: bigint;
  /** In the order of the log. */
  #notes: Note[] = [];
  /** By producer, what the first marker behind the window to come says. */
  readonly #fates = new Map<bigint, boolean>();
  #window = new Window();
  #hasFormerCount = false;
  #bytes = 0;

  constructor(prefix: string, ringSize: number, after: bigint) {
    this.#prefix = Buffer.from(prefix);
    this.#ringSize = ringSize;
    this.#after = after;
  }

  /** Nothing before what was read can matter. */
  get isComplete(): boolean {
    const first = this.#notes[0];
    if (first === undefined) return false;
    const isFull = this.#notes.length >= this.#ringSize || this.#bytes >= NOTES_BYTES_MAX;
    return first.batch <= this.#after || isFull || this.#hasFormerCount;
  }

  take(batch: FetchedBatch): void {
    const isCommit = markerOf(batch);
    if (isCommit !== null) this.#window.end(batch.producerId, isCommit, this.#ringSize);
    else if ((batch.attributes & IS_CONTROL) === 0) this.#takeRecords(batch);
  }

  /** The window is read to its end. False when a transaction of the lane is not decided. */
  closeWindow(): boolean {
    const { committed, open, firstMarkers } = this.#window;
    for (const [producerId, notes] of open) {
      const isCommit = this.#fates.get(producerId);
      if (isCommit === undefined) return false;
      if (isCommit) committed.push(...notes);
    }
    for (const [producerId, isCommit] of firstMarkers) this.#fates.set(producerId, isCommit);
    const notes = [...committed.sort((one, other) => (one.offset < other.offset ? -1 : 1)), ...this.#notes];
    const rising = risingEnd(notes);
    this.#hasFormerCount ||= rising.length < notes.length;
    this.#notes = this.#stillThere(rising);
    this.#bytes = this.#notes.reduce((sum, { value }) => sum + value.length, 0);
    this.#window = new Window();
    return true;
  }

  /** Those above `after`; where nothing is above, the last one. */
  notesAbove(after: bigint): readonly Note[] {
    const above = this.#notes.filter(({ batch }) => batch > after);
    return above.length > 0 ? above : this.#notes.slice(-1);
  }

  /** Without those whose place in the ring a later one has taken: they are there only until the next compaction. */
  #stillThere(notes: readonly Note[]): Note[] {
    const taken = new Set<bigint>();
    return notes
      .toReversed()
      .filter(({ batch }) => {
        const place = batch % BigInt(this.#ringSize);
        const isThere = !taken.has(place);
        taken.add(place);
        return isThere;
      })
      .reverse();
  }

  #takeRecords({ firstOffset, attributes, producerId, records }: FetchedBatch): void {
    for (const { key, value, offsetDelta } of records) {
      if (key === null || value === null || !this.#isOurs(key)) continue;
      const offset = firstOffset + BigInt(offsetDelta);
      const batch = batchOfNote(value, `the ledger, offset ${offset}`);
      // A copy, or a few notes would keep whole answers of the broker in memory.
      const note = { offset, batch, value: Buffer.from(value) };
      if ((attributes & IS_TRANSACTIONAL) !== 0) this.#window.add(producerId, note);
    }
  }

  #isOurs(key: Buffer): boolean {
    const { length } = this.#prefix;
    return key.length > length && this.#prefix.compare(key, 0, length) === 0;
  }
}

class Window {
  readonly committed: Note[] = [];
  readonly open = new Map<bigint, Note[]>();
  readonly firstMarkers = new Map<bigint, boolean>();

  add(producerId: bigint, note: Note): void {
    const notes = this.open.get(producerId);
    if (notes === undefined) this.open.set(producerId, [note]);
    else notes.push(note);
  }

  end(producerId: bigint, isCommit: boolean, notesMax: number): void {
    if (!this.firstMarkers.has(producerId)) this.firstMarkers.set(producerId, isCommit);
    const notes = this.open.get(producerId);
    if (notes === undefined) return;
    this.open.delete(producerId);
    if (!isCommit) return;
    this.committed.push(...notes);
    if (this.committed.length > 2 * notesMax) this.committed.splice(0, this.committed.length - notesMax);
  }
}

/** Null for a batch that is no end of a transaction. */
function markerOf({ attributes, records }: FetchedBatch): boolean | null {
  const key = records[0]?.key;
  if ((attributes & IS_CONTROL) === 0 || !key || key.length < 4) return null;
  const kind = key.readInt16BE(2);
  return kind === COMMIT_MARKER ? true : kind === ABORT_MARKER ? false : null;
}

/** Numbers of a lane rise. Where they do not, what is before belongs to a former count that somebody gave up. */
function risingEnd(notes: readonly Note[]): Note[] {
  let start = notes.length - 1;
  while (start > 0 && notes[start - 1]!.batch < notes[start]!.batch) start--;
  return notes.slice(Math.max(0, start));
}
