import type { Message } from "../core/event.ts";
import { eventBytes } from "../core/event-size.ts";
import type { Failed } from "../core/outcome.ts";
import type { ClaimedEvent } from "../ports/queue-store.ts";

/** A claimed event in memory, on its way through its lane. */
export interface Entry {
  readonly event: ClaimedEvent;
  /** What it takes of the memory, all of its parts together. */
  readonly bytes: number;
  /** Null when the event is faulty: then `fault` says why, and it is never sent. */
  readonly message: Message | null;
  readonly fault: string | null;
  /** What was thrown at the translation, where something was. */
  readonly faultError: unknown;
  /** When its row was read. */
  readonly claimedMs: number;
  /** True for a held event that is tried again; its key's later events wait in the source. */
  readonly isHead: boolean;
  /** True when it was let in as the one probe of its topic's circuit. */
  readonly topicProbe: boolean;
  /** Publishes of this event in a row that ended without any answer, and when the first of them began. */
  silences: number;
  silentSinceMs: number | null;
  /** True after it spoiled a transaction for others: it is sent without any other. */
  isAlone: boolean;
  /** True after a failure that named the topic or the destination: others make better probes. */
  hasFailed: boolean;
  /** The queue's own note of where the event stands while it is in a publish. */
  line: Line | null;
}

type Made = Pick<Entry, "message" | "fault" | "faultError">;
type How = Omit<Entry, "event" | "bytes" | "line" | keyof Made>;

/** In one piece, since there is one for every event. */
export function entryOf(event: ClaimedEvent, made: Made, how: How): Entry {
  const { fault, faultError, message } = made;
  const { claimedMs, hasFailed, isAlone, isHead, silences, silentSinceMs, topicProbe } = how;
  return {
    event,
    bytes: eventBytes(event),
    message,
    fault,
    faultError,
    claimedMs,
    isHead,
    topicProbe,
    silences,
    silentSinceMs,
    isAlone,
    hasFailed,
    line: null,
  };
}

export interface FailedEntry {
  readonly entry: Entry;
  readonly outcome: Failed;
}

/** The events of one key, in order. Only one run of them is in a publish at a time. */
interface Line {
  readonly key: string | null;
  waiting: Entry[];
  /** Taken and not yet answered, in order. */
  sent: Entry[];
  unanswered: number;
  failed: Map<Entry, Failed> | null;
  listed: boolean;
}

/** Of one key no more is taken once so many wait, or once it has so many in all. */
export interface KeyLimits {
  readonly waiting: number;
  readonly places: number;
}

const NONE: readonly FailedEntry[] = [];

/**
 * What a lane has claimed and not yet brought to an end: a line per key, lines served in turn, so that a slow key
 * costs only itself. Events without a key are lines of their own.
 */
export class LaneQueue {
  readonly #lines = new Map<string, Line>();
  #ready: Line[] = [];
  #readyFrom = 0;
  #waiting = 0;
  /** The last that were taken was one without any other. */
  #wasLoner = false;

  /** Events waiting to be sent. */
  get waiting(): number {
    return this.#waiting;
  }

  isCrowded(key: string, limits: KeyLimits): boolean {
    const line = this.#lines.get(key);
    return line !== undefined && hasEnough(line, limits);
  }

  crowdedKeys(limits: KeyLimits): string[] {
    const keys: string[] = [];
    for (const [key, line] of this.#lines) if (hasEnough(line, limits)) keys.push(key);
    return keys;
  }

  push(entry: Entry): void {
    const line = this.#lineFor(entry.event.key);
    line.waiting.push(entry);
    this.#waiting += 1;
    if (line.unanswered === 0) this.#list(line);
  }

  /**
   * Takes up to `max` events whose keys are not in a publish; several of one key only when `manyOfKey`. A faulty event
   * is taken without any other of its key, so that nothing overtakes it; one that spoils others' publishes without any
   * other at all, in turn with the rest, and one that gets no answer only when nothing else is to be sent. `isFit` may leave lines out by their first event.
   */
  take(max: number, manyOfKey: boolean, isFit: (first: Entry) => boolean = anyEntry): Entry[] {
    const taken: Entry[] = [];
    const loners: Line[] = [];
    const unfit: Line[] = [];
    while (taken.length < max) {
      const line = this.#nextReady();
      if (line === undefined) break;
      if (!isFit(line.waiting[0]!)) unfit.push(line);
      else if (line.waiting[0]!.isAlone) {
        if (taken.length === 0 && !this.#wasLoner && line.waiting[0]!.silences === 0) {
          loners.unshift(line);
          break;
        }
        loners.push(line);
      } else this.#send(line, sendable(line, manyOfKey ? max - taken.length : 1), taken);
    }
    const loner = taken.length === 0 ? loners.shift() : undefined;
    this.#wasLoner = loner !== undefined;
    if (loner !== undefined) this.#send(loner, 1, taken);
    for (const line of [...loners, ...unfit]) this.#list(line);
    this.#waiting -= taken.length;
    return taken;
  }

  #send(line: Line, count: number, taken: Entry[]): void {
    line.sent = line.waiting.splice(0, count);
    line.unanswered = count;
    for (const entry of line.sent) {
      entry.line = line;
      taken.push(entry);
    }
  }

  delivered(entry: Entry): readonly FailedEntry[] {
    return this.#answer(entry, null);
  }

  /**
   * Failures of a line are told together, in order, once all its sent events are answered: only then is it known
   * which was the first, and nothing of the key is sent in between.
   */
  failed(entry: Entry, outcome: Failed): readonly FailedEntry[] {
    return this.#answer(entry, outcome);
  }

  /** Puts entries of one key back to the front of its line, in this order, to be sent again. */
  putBack(entries: readonly Entry[]): void {
    const first = entries[0];
    if (first === undefined) return;
    const line = this.#lineFor(first.event.key);
    line.waiting = [...entries, ...line.waiting];
    this.#waiting += entries.length;
    this.#list(line);
  }

  /** Takes all waiting events of a key out; those in a publish stay until they are answered. */
  dropKey(key: string): Entry[] {
    const line = this.#lines.get(key);
    return line === undefined ? [] : this.#empty(line);
  }

  /** Takes every line out in which one event matches: later events of a key must not overtake it. */
  dropLinesWith(matches: (entry: Entry) => boolean): Entry[] {
    return this.#allLines().flatMap((line) => (line.waiting.some(matches) ? this.#empty(line) : []));
  }

  dropAll(): Entry[] {
    return this.#allLines().flatMap((line) => this.#empty(line));
  }

  #answer(entry: Entry, failure: Failed | null): readonly FailedEntry[] {
    const { line } = entry;
    if (line === null) return NONE;
    entry.line = null;
    line.unanswered -= 1;
    if (failure !== null) {
      line.failed ??= new Map();
      line.failed.set(entry, failure);
    }
    if (line.unanswered > 0) return NONE;
    const failed = line.failed === null ? NONE : failuresInOrder(line, line.failed);
    line.sent = [];
    line.failed = null;
    if (line.waiting.length > 0) this.#list(line);
    else this.#forget(line);
    return failed;
  }

  #allLines(): Line[] {
    return [...new Set([...this.#lines.values(), ...this.#ready.slice(this.#readyFrom)])];
  }

  #empty(line: Line): Entry[] {
    const dropped = line.waiting;
    line.waiting = [];
    this.#waiting -= dropped.length;
    if (line.unanswered === 0) this.#forget(line);
    return dropped;
  }

  #lineFor(key: string | null): Line {
    const known = key === null ? undefined : this.#lines.get(key);
    if (known !== undefined) return known;
    const line: Line = { key, waiting: [], sent: [], unanswered: 0, failed: null, listed: false };
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
      if (line.waiting.length > 0 && line.unanswered === 0) return line;
    }
    return undefined;
  }

  /** The list is consumed from the front; what was consumed is let go of now and then. */
  #compact(): void {
    if (this.#readyFrom < this.#ready.length && this.#readyFrom < 1_024) return;
    this.#ready = this.#ready.slice(this.#readyFrom);
    this.#readyFrom = 0;
  }
}

function anyEntry(): boolean {
  return true;
}

function sendable(line: Line, max: number): number {
  if (line.waiting[0]!.fault !== null) return 1;
  let count = 1;
  while (count < max && count < line.waiting.length && isSociable(line.waiting[count]!)) count += 1;
  return count;
}

function isSociable({ fault, isAlone }: Entry): boolean {
  return fault === null && !isAlone;
}

function failuresInOrder(line: Line, failed: ReadonlyMap<Entry, Failed>): FailedEntry[] {
  return line.sent.flatMap((entry) => {
    const outcome = failed.get(entry);
    return outcome === undefined ? [] : [{ entry, outcome }];
  });
}

function hasEnough({ unanswered, waiting }: Line, limits: KeyLimits): boolean {
  return waiting.length >= limits.waiting || waiting.length + unanswered >= limits.places;
}
