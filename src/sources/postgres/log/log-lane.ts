import type { Grant } from "../../../ports/queue-store.ts";
import { quoteLiteral } from "../../../postgres/identifiers.ts";
import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import { LaneWindow } from "./lane-window.ts";
import type { Checkpoint, LogKind, LogPosition, LogRow } from "./log-kind.ts";

/** Unsettled rows of a lane in memory that are not in flight. Beyond this number the lane reads no further. */
const LEFT_MAX = 5_000;

/** What a takeover finds stored for a lane. */
export interface TakenLane<Segment> {
  readonly grant: Grant;
  readonly checkpoint: Checkpoint<Segment>;
  readonly incarnation: string;
  /** Events that a ledger lists as delivered and that the lane has yet to read. */
  readonly passed: readonly string[];
}

/** A lane of a log while this instance owns it, from one takeover to the next. */
export class LogLane<Segment> {
  readonly grant: Grant;
  /**
   * The server's incarnation at the takeover. After a crash of the server, state in memory must not be written any
   * more.
   */
  readonly incarnation: string;
  readonly window: LaneWindow<Segment>;
  /** Ids that a ledger lists as delivered and that have not been read yet. */
  readonly #passed: Set<string>;
  readonly #settledAhead: SettledAhead<Segment>;
  readonly #orderOf: (place: LogPosition<Segment>) => bigint;
  /** Passed ids that have been read: their notes can be deleted once the checkpoint is beyond them. */
  readonly #met = new Set<string>();
  #spentNotes: string[] = [];
  /** The last written checkpoint; null until this owner has written one. */
  written: string | null = null;
  /** A pass found that the state in memory is no longer valid: the lane must be taken over again. */
  isVoid = false;
  writtenAtMs = Number.NEGATIVE_INFINITY;
  /** Writes of the checkpoint run one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    kind: LogKind<Segment>,
    { grant, checkpoint: { place, ahead }, incarnation, passed }: TakenLane<Segment>,
  ) {
    this.grant = grant;
    this.incarnation = incarnation;
    this.window = new LaneWindow(place);
    this.#settledAhead = new SettledAhead(kind, ahead);
    this.#orderOf = (place) => kind.orderOf(place);
    this.#passed = new Set(passed);
  }

  /** Distinguishes two rows of the log that have the same id. */
  orderOf(place: LogPosition<Segment>): bigint {
    return this.#orderOf(place);
  }

  /** Put this into every statement that writes the checkpoint: it fails after a crash of the server. */
  get condition(): string {
    return `${SERVER_INCARNATION} = ${quoteLiteral(this.incarnation)}`;
  }

  /** True when the row was delivered before, according to the checkpoint or the ledger. */
  isDone(row: LogRow<Segment>): boolean {
    if (this.#settledAhead.meet(row)) return true;
    if (this.#passed.size === 0 || !this.#passed.has(row.event.id)) return false;
    this.#met.add(row.event.id);
    return true;
  }

  notePassed(ids: readonly string[]): void {
    for (const id of ids) this.#passed.add(id);
  }

  /** Notes in `passed` that are not needed any more. */
  get spentNotes(): readonly string[] {
    return this.#spentNotes;
  }

  /** Call this once a checkpoint has been written. */
  wrote(checkpoint: string, nowMs: number, forgotten: readonly string[]): void {
    this.written = checkpoint;
    this.writtenAtMs = nowMs;
    if (forgotten.length > 0) this.#spentNotes = [];
    this.window.trim((id) => {
      if (this.#met.size === 0 || !this.#met.delete(id)) return;
      this.#passed.delete(id);
      this.#spentNotes.push(id);
    });
  }

  /** Runs one write of the checkpoint at a time: a second one that overtook it would move the checkpoint back. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  /** Rows beyond the checkpoint's position that are settled, including those not read again yet. */
  ahead(): readonly LogPosition<Segment>[] {
    return [...this.#settledAhead.rest(), ...this.window.ahead()];
  }

  /**
   * True until the lane has read everything that the checkpoint lists. Until then older rows of the same keys may be
   * unread, and parked events must not overtake them.
   */
  get isBehind(): boolean {
    return !this.#settledAhead.isEmpty;
  }

  /** Moves the lane's head to this position. */
  reached(place: LogPosition<Segment>): void {
    this.window.head = place;
    this.#settledAhead.reached(place);
  }

  /**
   * The pass reached the end of the log for certain. Rows that the checkpoint or the ledger lists and that were not met
   * no longer exist.
   */
  atEnd(): void {
    this.#settledAhead.clear();
    for (const id of this.#passed) {
      if (this.#met.has(id)) continue;
      this.#passed.delete(id);
      this.#spentNotes.push(id);
    }
  }

  /** Rows that are neither settled nor in flight: shown but not accepted, or not shown for now. */
  left(isInFlight: (id: string) => boolean) {
    return this.window.allWaiting().filter(({ event }) => !isInFlight(event.id));
  }

  /** Whether the lane should stop reading for now. */
  isFull(left: number): boolean {
    return left >= LEFT_MAX;
  }
}

/**
 * Rows beyond a checkpoint's position that it lists as settled, until they are read. A checkpoint written before that
 * lists them again: the next owner has not met them either.
 */
export class SettledAhead<Segment> {
  readonly #kind: Pick<LogKind<Segment>, "orderOf" | "readsInOrder">;
  readonly #rows: Map<bigint, LogPosition<Segment>>;

  constructor(kind: Pick<LogKind<Segment>, "orderOf" | "readsInOrder">, ahead: readonly LogPosition<Segment>[]) {
    this.#kind = kind;
    this.#rows = new Map(ahead.map((row) => [kind.orderOf(row), row]));
  }

  /** True for such a row, once: from then on its reader knows it. */
  meet(row: LogPosition<Segment>): boolean {
    return this.#rows.size > 0 && this.#rows.delete(this.#kind.orderOf(row));
  }

  rest(): readonly LogPosition<Segment>[] {
    return this.#rows.size === 0 ? [] : [...this.#rows.values()];
  }

  /**
   * The lane reads on from here. In an ordered log, listed rows before this position that were not met no longer exist.
   */
  reached(place: LogPosition<Segment>): void {
    if (this.#rows.size === 0 || this.#kind.readsInOrder !== true) return;
    const here = this.#kind.orderOf(place);
    for (const order of this.#rows.keys()) if (order <= here) this.#rows.delete(order);
  }

  get isEmpty(): boolean {
    return this.#rows.size === 0;
  }

  /** The reading reached the end of the log: rows that it did not meet no longer exist. */
  clear(): void {
    this.#rows.clear();
  }
}
