import { batchOfNote } from "./ledger-record.ts";

/** A record batch as the client returns it from a fetch. */
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
 * Finds a lane's committed notes in a partition that is read backwards in windows, each window forwards. A record is
 * committed if the next marker of its producer says so; that marker may be in a window that was read before.
 *
 * It keeps at most one ring of notes, whatever else is in the partition, and limits their bytes: halting a lane is
 * better than running out of memory.
 */
export class LedgerTail {
  readonly #prefix: Buffer;
  readonly #ringSize: number;
  readonly #after: bigint;
  /** In log order. */
  #notes: Note[] = [];
  /** By producer: whether the first marker after the next window is a commit. */
  readonly #nextMarkers = new Map<bigint, boolean>();
  #window = new Window();
  #hasFormerNumbering = false;
  #bytes = 0;

  constructor(prefix: string, ringSize: number, after: bigint) {
    this.#prefix = Buffer.from(prefix);
    this.#ringSize = ringSize;
    this.#after = after;
  }

  /** Whether earlier records cannot matter. */
  get isComplete(): boolean {
    const first = this.#notes[0];
    if (first === undefined) return false;
    const isFull = this.#notes.length >= this.#ringSize || this.#bytes >= NOTES_BYTES_MAX;
    return first.batch <= this.#after || isFull || this.#hasFormerNumbering;
  }

  take(batch: FetchedBatch): void {
    const isCommit = markerOf(batch);
    if (isCommit !== null) this.#window.end(batch.producerId, isCommit, this.#ringSize);
    else if ((batch.attributes & IS_CONTROL) === 0) this.#takeRecords(batch);
  }

  /** Evaluates a window that is read to its end. False when a transaction of the lane is undecided. */
  closeWindow(): boolean {
    const { committed, open, firstMarkers } = this.#window;
    for (const [producerId, notes] of open) {
      const isCommit = this.#nextMarkers.get(producerId);
      if (isCommit === undefined) return false;
      if (isCommit) committed.push(...notes);
    }
    for (const [producerId, isCommit] of firstMarkers) this.#nextMarkers.set(producerId, isCommit);
    const notes = [...committed.sort((one, other) => (one.offset < other.offset ? -1 : 1)), ...this.#notes];
    const rising = risingEnd(notes);
    this.#hasFormerNumbering ||= rising.length < notes.length;
    this.#notes = this.#withoutReplaced(rising);
    this.#bytes = this.#notes.reduce((sum, { value }) => sum + value.length, 0);
    this.#window = new Window();
    return true;
  }

  /** The notes above `after`; if there are none, the last one. */
  notesAbove(after: bigint): readonly Note[] {
    const above = this.#notes.filter(({ batch }) => batch > after);
    return above.length > 0 ? above : this.#notes.slice(-1);
  }

  /** Drops notes whose ring key a later note has overwritten: they exist only until the next compaction. */
  #withoutReplaced(notes: readonly Note[]): Note[] {
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
      // Copy the bytes, or a few notes would keep whole responses in memory.
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

/** Null for a batch that is not a transaction marker. */
function markerOf({ attributes, records }: FetchedBatch): boolean | null {
  const key = records[0]?.key;
  if ((attributes & IS_CONTROL) === 0 || !key || key.length < 4) return null;
  const kind = key.readInt16BE(2);
  return kind === COMMIT_MARKER ? true : kind === ABORT_MARKER ? false : null;
}

/**
 * A lane's batch numbers rise. Where they do not, the earlier notes belong to a former numbering that is no longer
 * used.
 */
function risingEnd(notes: readonly Note[]): Note[] {
  let start = notes.length - 1;
  while (start > 0 && notes[start - 1]!.batch < notes[start]!.batch) start--;
  return notes.slice(Math.max(0, start));
}
