import { isRelayError } from "../../../core/errors.ts";
import { eventBytes } from "../../../core/event.ts";
import type { ClaimedEvent, LaneState, Run, RunRequest } from "../../../ports/queue-store.ts";
import type { WindowRow } from "./lane-window.ts";
import type { LogPass } from "./log-kind.ts";
import type { LogLane } from "./log-lane.ts";

/** Repeated ids that a run reports: a few are enough to find the cause. */
const REPEATED_MAX = 10;

/** What a run needs from its store. */
interface LogRunHost<Segment> {
  /** The parked events that can go now, in order; null when there are none. */
  openParked(): Promise<Run | null>;
  openLog(lanes: readonly LogLane<Segment>[]): Promise<LogPass<Segment>>;
  /** Whether any events may be parked. */
  readonly hasParked: boolean;
  /** Which of these events are parked already, with their positions, and which of these keys have parked events. */
  findParked(ids: readonly string[], keys: readonly string[]): Promise<FoundParked>;
  /** Once it resolves, the rows are settled and a written checkpoint has passed them. */
  park(lane: LogLane<Segment>, rows: readonly WindowRow<Segment>[]): Promise<void>;
  /** The run is over: checkpoints that moved without any event can be written. */
  ended(lanes: readonly LogLane<Segment>[]): Promise<void>;
}

interface FoundParked {
  readonly places: ReadonlyMap<string, bigint>;
  readonly keys: ReadonlySet<string>;
}

interface Parking<Segment> {
  readonly lane: LogLane<Segment>;
  readonly row: WindowRow<Segment>;
}

/**
 * A pass over what a log's lanes have yet to deliver, in three parts: rows read before and not accepted, parked events
 * that can go, and new rows. An event whose key has older events waiting is parked behind them.
 */
export class LogRun<Segment> implements Run {
  readonly lanes: readonly LaneState[];
  readonly #host: LogRunHost<Segment>;
  readonly #owned: ReadonlyMap<number, LogLane<Segment>>;
  readonly #exceptKeys: ReadonlySet<string>;
  readonly #exceptTypes: ReadonlySet<string>;
  readonly #isInFlight: (id: string) => boolean;
  /** Keys whose parked events this run has shown completely: their later events may follow. */
  readonly #opened = new Set<string>();
  /** Keys of which this run has parked an event. */
  readonly #closed = new Set<string>();
  /** Rows left in memory, by lane. */
  readonly #left = new Map<LogLane<Segment>, number>();
  readonly repeated: string[] = [];
  #again: ClaimedEvent[] | null = null;
  #parked: Run | null | undefined;
  #pass: LogPass<Segment> | null = null;
  #atEnd = false;
  #ended = false;
  #reading: Promise<unknown> = Promise.resolve();

  constructor(
    host: LogRunHost<Segment>,
    states: readonly LaneState[],
    lanes: readonly LogLane<Segment>[],
    { exceptKeys, exceptTypes, isInFlight = () => false }: RunRequest,
  ) {
    this.#host = host;
    this.lanes = states;
    this.#owned = new Map(lanes.map((lane) => [lane.grant.lane, lane]));
    this.#exceptKeys = new Set(exceptKeys);
    this.#exceptTypes = new Set(exceptTypes);
    this.#isInFlight = isInFlight;
  }

  get isAwaited(): boolean {
    return this.#parked?.isAwaited ?? false;
  }

  async next(rows: number, bytes: number): Promise<readonly ClaimedEvent[]> {
    const page = this.#next(Math.max(1, rows), bytes).catch((error: unknown) => {
      // The state in memory is not valid: take the lanes over again, from their written checkpoints.
      if (isRelayError(error, "LOG_LOST")) for (const lane of this.#owned.values()) lane.isVoid = true;
      throw error;
    });
    this.#reading = page.catch(() => {});
    return await page;
  }

  async end(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.#reading;
    await this.#parked?.end();
    await this.#pass?.end();
    await this.#host.ended([...this.#owned.values()]);
  }

  async #next(rows: number, bytes: number): Promise<readonly ClaimedEvent[]> {
    if (this.#ended) return [];
    const again = await this.#nextAgain(rows, bytes);
    if (again.length > 0) return again;
    const parked = await this.#nextParked(rows, bytes);
    if (parked.length > 0) return parked;
    this.#pass ??= await this.#host.openLog([...this.#owned.values()]);
    while (!this.#atEnd && !this.#ended) {
      const events = await this.#nextOfLog(this.#pass, rows, bytes);
      if (events.length > 0) return events;
    }
    return [];
  }

  async #nextAgain(rows: number, bytes: number): Promise<readonly ClaimedEvent[]> {
    this.#again ??= await this.#leftOver();
    let count = 0;
    let size = 0;
    while (count < this.#again.length && count < rows && size < bytes) size += eventBytes(this.#again[count++]!);
    return this.#again.splice(0, count);
  }

  /**
   * Rows that earlier runs read and that were not accepted. A row whose key is closed by now is parked with the others.
   */
  async #leftOver(): Promise<ClaimedEvent[]> {
    const left: Parking<Segment>[] = [];
    for (const lane of this.#owned.values()) {
      const rows = lane.left(this.#isInFlight);
      this.#left.set(lane, rows.length);
      for (const row of rows) left.push({ lane, row });
    }
    const { shown } = await this.#sort(left);
    return shown;
  }

  async #nextParked(rows: number, bytes: number): Promise<readonly ClaimedEvent[]> {
    if (this.#parked === undefined) this.#parked = this.#host.hasParked ? await this.#host.openParked() : null;
    if (this.#parked === null) return [];
    const page = await this.#parked.next(rows, bytes);
    for (const { key } of page) if (key !== null) this.#opened.add(key);
    if (page.length > 0) return page;
    await this.#parked.end();
    this.#parked = null;
    return [];
  }

  async #nextOfLog(pass: LogPass<Segment>, rows: number, bytes: number): Promise<readonly ClaimedEvent[]> {
    const page = await pass.next(rows, bytes);
    this.#atEnd = page.isEnd;
    const isPlain = this.#isPlain;
    const shown: ClaimedEvent[] = [];
    const fresh: Parking<Segment>[] = [];
    for (const row of page.rows) {
      const lane = this.#owned.get(row.event.lane);
      if (lane === undefined) continue;
      // A second row with the id of an event that is not settled yet is the same event.
      const known = lane.window.get(row.event.id);
      if (known !== undefined) {
        if (lane.orderOf(row) !== lane.orderOf(known)) this.#noteRepeated(row.event.id);
        continue;
      }
      const isDone = lane.isDone(row);
      const kept = lane.window.add(row, isDone);
      if (isDone) continue;
      if (isPlain) shown.push(row.event);
      else fresh.push({ lane, row: kept });
    }
    for (const [number, place] of page.heads) {
      const lane = this.#owned.get(number);
      if (lane === undefined) continue;
      lane.reached(place);
      if (page.isComplete) lane.atEnd();
    }
    if (isPlain) return shown;
    const sorted = await this.#sort(fresh);
    for (const { lane } of sorted.left) this.#keepLeft(pass, lane);
    return sorted.shown;
  }

  /** The usual case: nothing is parked and nothing must be left out, so every row can go. */
  get #isPlain(): boolean {
    return (
      !this.#host.hasParked && this.#exceptTypes.size === 0 && this.#exceptKeys.size === 0 && this.#closed.size === 0
    );
  }

  #keepLeft(pass: LogPass<Segment>, lane: LogLane<Segment>): void {
    const count = (this.#left.get(lane) ?? 0) + 1;
    this.#left.set(lane, count);
    if (lane.isFull(count)) pass.leave(lane.grant.lane);
  }

  /** Decides which rows are shown, which stay in memory for a later run, and which are parked now. */
  async #sort(rows: readonly Parking<Segment>[]) {
    if (rows.length === 0) return { shown: [], left: [] };
    const found = this.#host.hasParked ? await this.#find(rows) : NOTHING;
    const shown: ClaimedEvent[] = [];
    const left: Parking<Segment>[] = [];
    const parking: Parking<Segment>[] = [];
    for (const it of rows) {
      const { event } = it.row;
      const { key } = event;
      const isClosed = key !== null && (this.#closed.has(key) || (found.keys.has(key) && !this.#opened.has(key)));
      const parkedAt = found.places.get(event.id);
      if (parkedAt !== undefined) {
        it.row.isSettled = true;
        // Another row with the id of the parked one.
        if (parkedAt !== it.lane.orderOf(it.row)) this.#noteRepeated(event.id);
      } else if (isClosed || this.#exceptTypes.has(event.type) || this.#isCrowded(it)) {
        if (key !== null) this.#closed.add(key);
        parking.push(it);
      } else if (key !== null && this.#exceptKeys.has(key)) left.push(it);
      else shown.push(event);
    }
    if (parking.length > 0) await this.#park(parking);
    return { shown, left };
  }

  #noteRepeated(id: string): void {
    if (this.repeated.length < REPEATED_MAX) this.repeated.push(id);
  }

  /** Whether a busy key fills the lane's memory: its events are parked before the lane could read nothing else. */
  #isCrowded({ lane, row }: Parking<Segment>): boolean {
    const { key } = row.event;
    return key !== null && this.#exceptKeys.has(key) && lane.isFull(2 * (this.#left.get(lane) ?? 0));
  }

  async #park(rows: readonly Parking<Segment>[]): Promise<void> {
    for (const [lane, ofLane] of Map.groupBy(rows, (it) => it.lane)) {
      await this.#host.park(
        lane,
        ofLane.map(({ row }) => row),
      );
    }
  }

  async #find(rows: readonly Parking<Segment>[]): Promise<FoundParked> {
    const keys = new Set(rows.map(({ row }) => row.event.key).filter((key) => key !== null));
    for (const key of this.#opened) keys.delete(key);
    return await this.#host.findParked(
      rows.map(({ row }) => row.event.id),
      [...keys],
    );
  }
}

const NOTHING: FoundParked = { places: new Map(), keys: new Set() };
