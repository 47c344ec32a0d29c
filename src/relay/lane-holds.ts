import type { Hold, Unmarked } from "../core/hold.ts";

/** With more holds than this, a review of all of them costs too much for each change of an operator. */
const COMPARED_MAX = 1_000;

/** A hold in memory. Its due time is on the process's monotonic clock. */
export interface KeptHold {
  readonly id: string;
  readonly key: string | null;
  readonly dead: boolean;
  readonly parks: boolean;
  readonly attempts: number;
  readonly crashes: number;
  dueAtMs: number;
  /** When it was due before it was postponed: it keeps its turn before holds that were due later. */
  dueFirstMs?: number | undefined;
  /** When it was first met with silence, as far as this process knows. */
  readonly unansweredSinceMs: number | null;
  /** Set when the event is set aside, so that others probe the topic or the destination; null otherwise. */
  readonly waitsFor: CircuitScope | null;
  /** Set when the event was delivered but its row could not be marked. */
  readonly unmarked?: Unmarked | undefined;
  /** The event's size in memory; unknown until this owner of the lane has read it once. */
  readonly bytes?: number | undefined;
}

/** How many held events may be read now, and how much memory they may take. */
interface HeadRoom {
  readonly events: number;
  readonly bytes: number;
  /** The size that is assumed for an event of unknown size. */
  readonly unknownBytes: number;
}

/** The circuit that a set-aside event waits for: that of one topic, or (null) of the whole destination. */
export interface CircuitScope {
  readonly topic: string | null;
}

/** The holds of one lane in memory: which keys are parked, and which failing events are retried when. */
export class LaneHolds {
  readonly #holds = new Map<string, KeptHold>();
  readonly #parkedKeys = new Map<string, number>();
  readonly #claimed = new Set<string>();
  #idle = 0;
  #parkingDead = 0;

  get size(): number {
    return this.#holds.size;
  }

  /**
   * Holds that need a retry or block other events. Dead letters that park no key are finished, however many there are.
   */
  get openHolds(): number {
    return this.#holds.size - this.#idle;
  }

  /** Dead letters that park a key. */
  get parkingDead(): number {
    return this.#parkingDead;
  }

  /** True when there are parking dead letters, and few enough holds to compare all with the source at each change. */
  get hasFewDead(): boolean {
    return this.#parkingDead > 0 && this.#holds.size <= COMPARED_MAX;
  }

  get(id: string): KeptHold | undefined {
    return this.#holds.size === 0 ? undefined : this.#holds.get(id);
  }

  count(): { dead: number; retrying: number } {
    const dead = [...this.#holds.values()].filter((hold) => hold.dead).length;
    return { dead, retrying: this.#holds.size - dead };
  }

  /** Events that are being retried and have no new outcome yet. */
  get beingTried(): number {
    return this.#claimed.size;
  }

  /** Delivered events whose rows the source refused to mark. */
  refusedMarks(): string[] {
    return [...this.#holds.values()].filter(({ unmarked }) => unmarked === "refused").map(({ id }) => id);
  }

  /** True when later events of this key must wait. */
  parks(key: string | null): boolean {
    return key !== null && this.#parkedKeys.size > 0 && this.#parkedKeys.has(key);
  }

  /** Adds a hold or replaces the one with the same id. */
  put(hold: KeptHold): void {
    this.remove(hold.id);
    this.#holds.set(hold.id, hold);
    if (isIdle(hold)) this.#idle += 1;
    else if (hold.dead) this.#parkingDead += 1;
    if (hold.parks && hold.key !== null) {
      this.#parkedKeys.set(hold.key, (this.#parkedKeys.get(hold.key) ?? 0) + 1);
    }
  }

  remove(id: string): KeptHold | undefined {
    const hold = this.#holds.get(id);
    this.#claimed.delete(id);
    if (hold === undefined) return undefined;
    this.#holds.delete(id);
    if (isIdle(hold)) this.#idle -= 1;
    else if (hold.dead) this.#parkingDead -= 1;
    if (hold.parks && hold.key !== null) {
      const left = (this.#parkedKeys.get(hold.key) ?? 1) - 1;
      if (left === 0) this.#parkedKeys.delete(hold.key);
      else this.#parkedKeys.set(hold.key, left);
    }
    return hold;
  }

  /**
   * Replaces all holds with those of the source and returns the keys that are no longer parked. Events that are in
   * flight or being read keep their hold, because memory knows more about them than the source: their outcome is not
   * written yet.
   */
  replace(holds: readonly Hold[], nowMs: number, isInFlight: (id: string) => boolean): string[] {
    const before = [...this.#parkedKeys.keys()];
    const known = new Set(holds.map((hold) => hold.id));
    const isBusy = (id: string): boolean => this.#claimed.has(id) || isInFlight(id);
    for (const id of [...this.#holds.keys()]) if (!known.has(id) && !isBusy(id)) this.remove(id);
    this.takeUp(holds, nowMs, isInFlight);
    return before.filter((key) => !this.#parkedKeys.has(key));
  }

  /** The same for some holds; the others stay unchanged. */
  takeUp(holds: readonly Hold[], nowMs: number, isInFlight: (id: string) => boolean): void {
    for (const hold of holds) {
      if (this.#claimed.has(hold.id) || isInFlight(hold.id)) continue;
      this.put(keep(hold, nowMs, this.get(hold.id)));
    }
  }

  /**
   * Ids of events to retry now, the longest overdue first. Each id is returned once, until its hold is put, postponed
   * or removed. An event that is larger than the room is returned alone: otherwise it would never be retried.
   */
  claimDue(nowMs: number, room: HeadRoom): string[] {
    if (room.events <= 0 || room.bytes <= 0) return [];
    const due = [...this.#holds.values()].filter((hold) => this.#isDue(hold, nowMs));
    due.sort((a, b) => (a.dueFirstMs ?? a.dueAtMs) - (b.dueFirstMs ?? b.dueAtMs));
    const ids: string[] = [];
    let bytes = 0;
    for (const hold of due.slice(0, room.events)) {
      bytes += hold.bytes ?? room.unknownBytes;
      if (ids.length > 0 && bytes > room.bytes) break;
      ids.push(hold.id);
    }
    for (const id of ids) this.#claimed.add(id);
    return ids;
  }

  /** The event found no room: it is due again at this time. */
  postpone(id: string, untilMs: number): void {
    this.#claimed.delete(id);
    const hold = this.#holds.get(id);
    if (hold === undefined || untilMs <= hold.dueAtMs) return;
    hold.dueFirstMs ??= hold.dueAtMs;
    hold.dueAtMs = untilMs;
  }

  /**
   * Makes set-aside events due once their topic or destination is alive again. A hold that is not written yet stays.
   */
  recallSetAside(nowMs: number, isAlive: (circle: CircuitScope) => boolean): void {
    for (const hold of this.#holds.values()) {
      if (hold.waitsFor === null || !Number.isFinite(hold.dueAtMs) || !isAlive(hold.waitsFor)) continue;
      hold.dueAtMs = Math.min(hold.dueAtMs, nowMs);
    }
  }

  /** When the next hold is due; Infinity when none is. */
  nextDueMs(): number {
    let earliestMs = Number.POSITIVE_INFINITY;
    for (const hold of this.#holds.values()) {
      if (!hold.dead && !this.#claimed.has(hold.id) && hold.dueAtMs < earliestMs) earliestMs = hold.dueAtMs;
    }
    return earliestMs;
  }

  #isDue(hold: KeptHold, nowMs: number): boolean {
    return !hold.dead && hold.dueAtMs <= nowMs && !this.#claimed.has(hold.id);
  }
}

function isIdle({ dead, key, parks }: KeptHold): boolean {
  return dead && (!parks || key === null);
}

/** The source does not know what a set-aside event waits for, and lists it as due soon: the due time in memory wins. */
function keep(hold: Hold, nowMs: number, known: KeptHold | undefined): KeptHold {
  const { id, key, parks, attempts, crashes, unmarked } = hold;
  // A delivered event is never due again, whatever happens to its row.
  const dead = hold.state === "dead" || unmarked !== undefined;
  const { bytes, dueFirstMs, unansweredSinceMs = null, waitsFor = null } = known ?? {};
  const dueAtMs = Math.max(nowMs + (hold.dueInMs ?? 0), waitsFor === null ? 0 : known!.dueAtMs);
  return { id, key, dead, parks, attempts, crashes, dueAtMs, dueFirstMs, unansweredSinceMs, waitsFor, unmarked, bytes };
}
