import type { Grant } from "../../../ports/queue-store.ts";
import { quoteLiteral } from "../../../postgres/identifiers.ts";
import { LIFE } from "../../../postgres/server-life.ts";
import { LaneWindow } from "./lane-window.ts";
import type { Checkpoint, LogKind, LogPlace, LogRow } from "./log-kind.ts";
import { OwedRows } from "./owed-rows.ts";

/** Rows of a lane that wait in memory without being in flight; beyond this it reads no further. */
const LEFT_MAX = 5_000;

/** What a take-over finds written down of a lane. */
export interface TakenLane<Segment> {
  readonly grant: Grant;
  readonly checkpoint: Checkpoint<Segment>;
  readonly life: string;
  /** Events that a ledger knows as delivered and that lie before the reading. */
  readonly passed: readonly string[];
}

/** A lane of a log in this owner's hands, from one take-over to the next. */
export class LogLane<Segment> {
  readonly grant: Grant;
  /** The server's life in which the lane was taken: behind a crash nothing that memory knows may be written down. */
  readonly life: string;
  readonly window: LaneWindow<Segment>;
  /** Ids that a ledger knows as delivered; the reading has not come by yet. */
  readonly #passed: Set<string>;
  readonly #owed: OwedRows<Segment>;
  readonly #orderOf: (place: LogPlace<Segment>) => bigint;
  /** Passed ids that the reading has come by: their notes may go once the checkpoint is behind them. */
  readonly #met = new Set<string>();
  #spentNotes: string[] = [];
  /** What is written down; null until this owner has written. */
  written: string | null = null;
  /** A pass found that what memory knows of the log is not true any more: it must be taken over anew. */
  isVoid = false;
  writtenAtMs = Number.NEGATIVE_INFINITY;
  /** Writes of the checkpoint come one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(kind: LogKind<Segment>, { grant, checkpoint: { place, ahead }, life, passed }: TakenLane<Segment>) {
    this.grant = grant;
    this.life = life;
    this.window = new LaneWindow(place);
    this.#owed = new OwedRows(kind, ahead);
    this.#orderOf = (place) => kind.orderOf(place);
    this.#passed = new Set(passed);
  }

  /** True for another row than the one that is known under the same id. */
  isRepetition(row: LogRow<Segment>, known: LogPlace<Segment>): boolean {
    return this.#orderOf(row) !== this.#orderOf(known);
  }

  /** To be put into every statement that writes the checkpoint. */
  get condition(): string {
    return `${LIFE} = ${quoteLiteral(this.life)}`;
  }

  /** True when the row was delivered before, as checkpoint or ledger tell. */
  isDone(row: LogRow<Segment>): boolean {
    if (this.#owed.meet(row)) return true;
    if (!this.#passed.has(row.event.id)) return false;
    this.#met.add(row.event.id);
    return true;
  }

  notePassed(ids: readonly string[]): void {
    for (const id of ids) this.#passed.add(id);
  }

  /** Notes in `passed` that are of no use any more. */
  get spentNotes(): readonly string[] {
    return this.#spentNotes;
  }

  /** To be called when a checkpoint is written down. */
  wrote(checkpoint: string, nowMs: number, forgotten: readonly string[]): void {
    this.written = checkpoint;
    this.writtenAtMs = nowMs;
    if (forgotten.length > 0) this.#spentNotes = [];
    this.window.trim((id) => {
      if (!this.#met.delete(id)) return;
      this.#passed.delete(id);
      this.#spentNotes.push(id);
    });
  }

  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  /** Rows behind the checkpoint's place that are settled, also those that the reading has not come by yet. */
  ahead(): readonly LogPlace<Segment>[] {
    return [...this.#owed.rest(), ...this.window.ahead()];
  }

  /**
   * True while the reading has not come by everything that the checkpoint lists: then older rows of the same keys may
   * still be unread, and what is parked must not overtake them.
   */
  get isBehind(): boolean {
    return !this.#owed.isEmpty;
  }

  /** The reading stands here. */
  reached(place: LogPlace<Segment>): void {
    this.window.head = place;
    this.#owed.reached(place);
  }

  /** The reading came to the end of the log, for certain: what it was told of and did not meet is not there any more. */
  atEnd(): void {
    this.#owed.clear();
    for (const id of this.#passed) {
      if (this.#met.has(id)) continue;
      this.#passed.delete(id);
      this.#spentNotes.push(id);
    }
  }

  /** Rows that neither are settled nor in flight: shown and not taken, or not shown for now. */
  left(isInFlight: (id: string) => boolean) {
    return this.window.allWaiting().filter(({ event }) => !isInFlight(event.id));
  }

  isFull(left: number): boolean {
    return left >= LEFT_MAX;
  }
}
