import { isRelayError } from "../../../core/errors.ts";
import { eventBytes } from "../../../core/event-size.ts";
import type { ClaimedEvent, LaneState, Run, RunRequest } from "../../../ports/queue-store.ts";
import type { WindowRow } from "./lane-window.ts";
import type { LogPass } from "./log-kind.ts";
import type { LogLane } from "./log-lane.ts";

/** Repetitions that a run tells of: one is enough to know. */
const REPEATED_MAX = 10;

/** What a run asks of its store. */
interface LogRunHost<Segment> {
  /** The parked events that may go now, in order; null when there are none. */
  openParked(): Promise<Run | null>;
  openLog(lanes: readonly LogLane<Segment>[]): Promise<LogPass<Segment>>;
  /** Whether there may be parked events at all. */
  readonly hasParked: boolean;
  /** Of these events those that are parked already, and of these keys those that have parked events. */
  findParked(
    ids: readonly string[],
    keys: readonly string[],
  ): Promise<{ readonly ids: ReadonlySet<string>; readonly keys: ReadonlySet<string> }>;
  /** When it is done the rows are settled, and the lane's checkpoint has them behind it. */
  park(lane: LogLane<Segment>, rows: readonly WindowRow<Segment>[]): Promise<void>;
  /** The run is over: checkpoints that moved without any event may be written. */
  ended(lanes: readonly LogLane<Segment>[]): Promise<void>;
}

interface Parking<Segment> {
  readonly lane: LogLane<Segment>;
  readonly row: WindowRow<Segment>;
}

/**
 * A pass over what a log's lanes have before them, in three parts: what was read before and not taken, what is parked
 * and may go, and what is new. An event whose key has older ones waiting is parked behind them on the way.
 */
export class LogRun<Segment> implements Run {
  readonly lanes: readonly LaneState[];
  readonly #host: LogRunHost<Segment>;
  readonly #owned: ReadonlyMap<number, LogLane<Segment>>;
  readonly #exceptKeys: ReadonlySet<string>;
  readonly #exceptTypes: ReadonlySet<string>;
  readonly #isInFlight: (id: string) => boolean;
  /** Keys whose parked events this run has shown, all of them: what comes later may follow. */
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
      // Whatever memory knows of the log is of no use: the lanes are taken over anew, from what is written down.
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

  /** What earlier runs read and nobody took, unless its key is closed by now: then it waits with the others. */
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
      // A second row under the id of one that is still under way is the same event.
      const known = lane.window.get(row.event.id);
      if (known !== undefined) {
        if (lane.isRepetition(row, known) && this.repeated.length < REPEATED_MAX) this.repeated.push(row.event.id);
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

  /** Nothing waits beside the log and nothing is to be left out, as nearly always: every row may go. */
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

  /** Which of the rows may be shown, which stay in memory for a later run, and which are parked now. */
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
      if (found.ids.has(event.id)) it.row.isSettled = true;
      else if (isClosed || this.#exceptTypes.has(event.type) || this.#isCrowded(it)) {
        if (key !== null) this.#closed.add(key);
        parking.push(it);
      } else if (key !== null && this.#exceptKeys.has(key)) left.push(it);
      else shown.push(event);
    }
    if (parking.length > 0) await this.#park(parking);
    return { shown, left };
  }

  /** A key that has enough in flight waits in memory, but not so many that its lane could read nothing else. */
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

  async #find(rows: readonly Parking<Segment>[]) {
    const keys = new Set(rows.map(({ row }) => row.event.key).filter((key) => key !== null));
    for (const key of this.#opened) keys.delete(key);
    return await this.#host.findParked(
      rows.map(({ row }) => row.event.id),
      [...keys],
    );
  }
}

const NOTHING = { ids: new Set<string>(), keys: new Set<string>() };
