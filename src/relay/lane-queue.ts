import { eventBytes, type Message } from "../core/event.ts";
import type { Failed } from "../core/outcome.ts";
import type { ClaimedEvent } from "../ports/queue-store.ts";

/** A claimed event in memory, on its way through its lane. */
export interface Entry {
  readonly event: ClaimedEvent;
  /** The event's size in memory, all parts together. */
  readonly bytes: number;
  /** Null when the event is faulty: `fault` then has the reason, and the event is never sent. */
  readonly message: Message | null;
  readonly fault: string | null;
  /** What the translation threw, if anything. */
  readonly faultError: unknown;
  /** When its row was read, and by which run. */
  readonly claimedMs: number;
  readonly run: number;
  /** The claims of its lane. */
  readonly owner: object;
  /** True for a held event that is retried; the later events of its key wait in the source. */
  readonly isHead: boolean;
  /** True when the event is the probe of its topic's circuit. */
  readonly topicProbe: boolean;
  /** Publishes in a row that ended without an answer for this event. */
  unansweredSends: number;
  /** When the first of them began. */
  unansweredSinceMs: number | null;
  /** True after it made a whole batch fail: it is sent alone. */
  isIsolated: boolean;
  /** True after a failure that named the topic or the destination: other events make better probes. */
  hasFailed: boolean;
  /** Used by the queue: the event's line while it is in a publish, and its place among those sent with it. */
  line: Line | null;
  place: number;
  /** Used by the queue: the next waiting event of its line. */
  behind: Entry | null;
}

type Made = Pick<Entry, "message" | "fault" | "faultError">;
type How = Omit<Entry, "event" | "bytes" | "line" | "place" | "behind" | keyof Made>;

/** Creates an entry. One object literal instead of spreads, because this runs for every event. */
export function entryOf(event: ClaimedEvent, made: Made, how: How): Entry {
  return {
    event,
    bytes: eventBytes(event),
    message: made.message,
    fault: made.fault,
    faultError: made.faultError,
    claimedMs: how.claimedMs,
    run: how.run,
    owner: how.owner,
    isHead: how.isHead,
    topicProbe: how.topicProbe,
    unansweredSends: how.unansweredSends,
    unansweredSinceMs: how.unansweredSinceMs,
    isIsolated: how.isIsolated,
    hasFailed: how.hasFailed,
    line: null,
    place: 0,
    behind: null,
  };
}

/** An event that failed in a publish. */
export interface FailedEntry {
  readonly entry: Entry;
  readonly outcome: Failed;
}

/**
 * The queued events of one key, in order. A line is in one publish at a time. The waiting events are linked: most lines
 * have only one, and an array for each would cost more than the event itself.
 */
interface Line {
  readonly key: string | null;
  first: Entry | null;
  last: Entry | null;
  /** The number of waiting events. */
  waiting: number;
  /** Taken for a publish and not yet answered. */
  unanswered: number;
  failed: FailedEntry[] | null;
  listed: boolean;
}

/** A lane takes no more events of a key that has this many waiting, or this many in all (`places`). */
export interface KeyLimits {
  readonly waiting: number;
  readonly places: number;
}

/** A key may take half of the lane's places: a slow key with a long backlog must leave room for others. */
export function keyLimits(waiting: number, placesOfLane: () => number): KeyLimits {
  return {
    waiting,
    get places() {
      return Math.max(1, Math.floor(placesOfLane() / 2));
    },
  };
}

const NONE: readonly FailedEntry[] = [];

/**
 * The claimed events of a lane that have no outcome yet: one line (queue) per key, served round-robin, so that a slow
 * key delays only itself. Each event without a key has a line of its own.
 */
export class LaneQueue {
  readonly #lines = new Map<string, Line>();
  #ready: Line[] = [];
  #readyFrom = 0;
  #waiting = 0;
  /** True when the last batch was one isolated event. */
  #wasIsolated = false;

  /** Events waiting to be sent. */
  get waiting(): number {
    return this.#waiting;
  }

  /** True when the key has enough events here. */
  isCrowded(key: string, limits: KeyLimits): boolean {
    const line = this.#lines.get(key);
    return line !== undefined && hasEnough(line, limits);
  }

  crowdedKeys(limits: KeyLimits): string[] {
    const keys: string[] = [];
    for (const [key, line] of this.#lines) if (hasEnough(line, limits)) keys.push(key);
    return keys;
  }

  /** Adds an event behind the others of its key. */
  push(entry: Entry): void {
    const line = this.#lineFor(entry.event.key);
    addLast(line, entry);
    this.#waiting += 1;
    if (line.unanswered === 0) this.#list(line);
  }

  /**
   * Takes up to `max` events whose keys are not in a publish; several of one key only when `manyOfKey`. A faulty event
   * is taken without others of its key, so that nothing overtakes it. An isolated event is taken alone, alternating
   * with batches of the others; one that gets no answer is taken only when nothing else can be sent. `isFit` can
   * exclude lines by their first event.
   */
  take(max: number, manyOfKey: boolean, isFit: (first: Entry) => boolean = anyEntry): Entry[] {
    const taken: Entry[] = [];
    const isolated: Line[] = [];
    const unfit: Line[] = [];
    while (taken.length < max) {
      const line = this.#nextReady();
      if (line === undefined) break;
      const first = line.first!;
      if (!isFit(first)) unfit.push(line);
      else if (first.isIsolated) {
        if (taken.length === 0 && !this.#wasIsolated && first.unansweredSends === 0) {
          isolated.unshift(line);
          break;
        }
        isolated.push(line);
      } else this.#send(line, sendable(line, manyOfKey ? max - taken.length : 1), taken);
    }
    const isolatedLine = taken.length === 0 ? isolated.shift() : undefined;
    this.#wasIsolated = isolatedLine !== undefined;
    if (isolatedLine !== undefined) this.#send(isolatedLine, 1, taken);
    for (const line of [...isolated, ...unfit]) this.#list(line);
    this.#waiting -= taken.length;
    return taken;
  }

  #send(line: Line, count: number, taken: Entry[]): void {
    line.unanswered = count;
    for (let place = 0; place < count; place += 1) {
      const entry = removeFirst(line);
      entry.line = line;
      entry.place = place;
      taken.push(entry);
    }
  }

  delivered(entry: Entry): readonly FailedEntry[] {
    return this.#answer(entry, null);
  }

  /**
   * Returns the failures of a line together, in order, once all its sent events are answered: only then is it known
   * which event failed first. Nothing of the key is sent until then.
   */
  failed(entry: Entry, outcome: Failed): readonly FailedEntry[] {
    return this.#answer(entry, outcome);
  }

  /**
   * Puts entries of one key back to the front of its line, in this order: they are sent again before their followers.
   */
  putBack(entries: readonly Entry[]): void {
    const first = entries[0];
    if (first === undefined) return;
    const line = this.#lineFor(first.event.key);
    for (const entry of entries.toReversed()) addFirst(line, entry);
    this.#waiting += entries.length;
    this.#list(line);
  }

  /** Removes all waiting events of a key. Those in a publish stay until they are answered. */
  dropKey(key: string): Entry[] {
    const line = this.#lines.get(key);
    return line === undefined ? [] : this.#empty(line);
  }

  /** Removes the whole line of every matching event, because later events of its key must not overtake it. */
  dropLinesWith(matches: (entry: Entry) => boolean): Entry[] {
    return this.#allLines().flatMap((line) => (waitingOf(line).some(matches) ? this.#empty(line) : []));
  }

  /** Removes all waiting events. */
  dropAll(): Entry[] {
    return this.#allLines().flatMap((line) => this.#empty(line));
  }

  #answer(entry: Entry, failure: Failed | null): readonly FailedEntry[] {
    const { line } = entry;
    if (line === null) return NONE;
    entry.line = null;
    line.unanswered -= 1;
    if (failure !== null) {
      line.failed ??= [];
      line.failed.push({ entry, outcome: failure });
    }
    if (line.unanswered > 0) return NONE;
    const failed = line.failed?.sort((left, right) => left.entry.place - right.entry.place) ?? NONE;
    line.failed = null;
    if (line.first !== null) this.#list(line);
    else this.#forget(line);
    return failed;
  }

  #allLines(): Line[] {
    return [...new Set([...this.#lines.values(), ...this.#ready.slice(this.#readyFrom)])];
  }

  #empty(line: Line): Entry[] {
    const dropped = waitingOf(line);
    while (line.first !== null) removeFirst(line);
    this.#waiting -= dropped.length;
    if (line.unanswered === 0) this.#forget(line);
    return dropped;
  }

  #lineFor(key: string | null): Line {
    const known = key === null ? undefined : this.#lines.get(key);
    if (known !== undefined) return known;
    const line: Line = { key, first: null, last: null, waiting: 0, unanswered: 0, failed: null, listed: false };
    if (key !== null) this.#lines.set(key, line);
    return line;
  }

  #list(line: Line): void {
    if (line.listed) return;
    line.listed = true;
    this.#ready.push(line);
  }

  #forget(line: Line): void {
    if (line.key !== null && this.#lines.get(line.key) === line) this.#lines.delete(line.key);
  }

  #nextReady(): Line | undefined {
    while (this.#readyFrom < this.#ready.length) {
      const line = this.#ready[this.#readyFrom++]!;
      line.listed = false;
      this.#compact();
      if (line.first !== null && line.unanswered === 0) return line;
    }
    return undefined;
  }

  /** The list is consumed by index, because a shift would copy it. The consumed part is dropped from time to time. */
  #compact(): void {
    if (this.#readyFrom < this.#ready.length && this.#readyFrom < 1_024) return;
    this.#ready = this.#ready.slice(this.#readyFrom);
    this.#readyFrom = 0;
  }
}

function anyEntry(): boolean {
  return true;
}

function addLast(line: Line, entry: Entry): void {
  if (line.last === null) line.first = entry;
  else line.last.behind = entry;
  line.last = entry;
  line.waiting += 1;
}

function addFirst(line: Line, entry: Entry): void {
  entry.behind = line.first;
  line.first = entry;
  line.last ??= entry;
  line.waiting += 1;
}

/** Only for a line with waiting events. */
function removeFirst(line: Line): Entry {
  const entry = line.first!;
  line.first = entry.behind;
  if (line.first === null) line.last = null;
  entry.behind = null;
  line.waiting -= 1;
  return entry;
}

function waitingOf(line: Line): Entry[] {
  const waiting: Entry[] = [];
  for (let entry = line.first; entry !== null; entry = entry.behind) waiting.push(entry);
  return waiting;
}

/** How many events of the line may go into one publish together. */
function sendable(line: Line, max: number): number {
  const first = line.first!;
  if (first.fault !== null) return 1;
  let count = 1;
  for (let next = first.behind; count < max && next !== null && canShareBatch(next); next = next.behind) count += 1;
  return count;
}

function canShareBatch({ fault, isIsolated }: Entry): boolean {
  return fault === null && !isIsolated;
}

function hasEnough({ unanswered, waiting }: Line, limits: KeyLimits): boolean {
  return waiting >= limits.waiting || waiting + unanswered >= limits.places;
}
