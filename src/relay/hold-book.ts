import type { Hold, Unmarked } from "../core/hold.ts";

const COMPARED_MAX = 1_000;

/** A hold in memory, its due time on the process's monotonic clock. */
export interface KeptHold {
  readonly id: string;
  readonly key: string | null;
  readonly dead: boolean;
  readonly parks: boolean;
  readonly attempts: number;
  readonly crashes: number;
  dueAtMs: number;
  /** When it was due before it was postponed for others; it comes before whatever was due later. */
  dueFirstMs?: number | undefined;
  /** When it was first met with silence, as far as this process knows. */
  readonly silentSinceMs: number | null;
  /** It makes room for others, so that they find out whether the topic or the destination is alive; null: it does not. */
  readonly waitsFor: Circle | null;
  /** Delivered, and its row could not be marked. */
  readonly unmarked?: Unmarked | undefined;
}

/** How far a failure reaches: one topic, or (null) the whole destination. */
export interface Circle {
  readonly topic: string | null;
}

/** What a lane knows of its failing events: which keys wait, and what is to be tried when. */
export class HoldBook {
  readonly #holds = new Map<string, KeptHold>();
  readonly #parkedKeys = new Map<string, number>();
  readonly #claimed = new Set<string>();
  #idle = 0;
  #parkingDead = 0;

  get size(): number {
    return this.#holds.size;
  }

  /** Without the dead ones that keep nobody waiting: those are done with, however many they are. */
  get burdens(): number {
    return this.#holds.size - this.#idle;
  }

  /** Dead ones behind which others wait. */
  get parkingDead(): number {
    return this.#parkingDead;
  }

  /** Few enough of them to compare all with the source whenever a person has changed some. */
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

  /** Events that were given out to be tried again and have no new verdict yet. */
  get beingTried(): number {
    return this.#claimed.size;
  }

  /** Delivered events whose rows the source refused to mark. */
  refusedMarks(): string[] {
    return [...this.#holds.values()].filter(({ unmarked }) => unmarked === "refused").map(({ id }) => id);
  }

  parks(key: string | null): boolean {
    return key !== null && this.#parkedKeys.size > 0 && this.#parkedKeys.has(key);
  }

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
   * Takes over what the source says; returns the keys that are parked no longer. Events that are in flight or just
   * being read keep what is known of them: the news about them is not written yet.
   */
  replace(holds: readonly Hold[], nowMs: number, isInFlight: (id: string) => boolean): string[] {
    const before = [...this.#parkedKeys.keys()];
    const known = new Set(holds.map((hold) => hold.id));
    const isBusy = (id: string): boolean => this.#claimed.has(id) || isInFlight(id);
    for (const id of [...this.#holds.keys()]) if (!known.has(id) && !isBusy(id)) this.remove(id);
    this.takeUp(holds, nowMs, isInFlight);
    return before.filter((key) => !this.#parkedKeys.has(key));
  }

  /** The same for some of them: the others stay as they are. */
  takeUp(holds: readonly Hold[], nowMs: number, isInFlight: (id: string) => boolean): void {
    for (const hold of holds) {
      if (this.#claimed.has(hold.id) || isInFlight(hold.id)) continue;
      this.put(keep(hold, nowMs, this.get(hold.id)));
    }
  }

  /** Ids to be tried now, longest due first; each is given out once until it is put, postponed or removed. */
  claimDue(nowMs: number, max: number): string[] {
    if (max <= 0) return [];
    const due = [...this.#holds.values()].filter((hold) => this.#isDue(hold, nowMs));
    due.sort((a, b) => (a.dueFirstMs ?? a.dueAtMs) - (b.dueFirstMs ?? b.dueAtMs));
    const ids = due.slice(0, max).map((hold) => hold.id);
    for (const id of ids) this.#claimed.add(id);
    return ids;
  }

  postpone(id: string, untilMs: number): void {
    this.#claimed.delete(id);
    const hold = this.#holds.get(id);
    if (hold === undefined || untilMs <= hold.dueAtMs) return;
    hold.dueFirstMs ??= hold.dueAtMs;
    hold.dueAtMs = untilMs;
  }

  /** What was set aside is due as soon as what it waits for is alive, and its hold written. */
  recallSetAside(nowMs: number, isAlive: (circle: Circle) => boolean): void {
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

/** In the source a set-aside event is due soon: only here it is known what it waits for. */
function keep(hold: Hold, nowMs: number, known: KeptHold | undefined): KeptHold {
  const { id, key, parks, attempts, crashes, unmarked } = hold;
  // What was delivered is never due again, whatever becomes of its row.
  const dead = hold.state === "dead" || unmarked !== undefined;
  const { dueFirstMs, silentSinceMs = null, waitsFor = null } = known ?? {};
  const dueAtMs = Math.max(nowMs + (hold.dueInMs ?? 0), waitsFor === null ? 0 : known!.dueAtMs);
  return { id, key, dead, parks, attempts, crashes, dueAtMs, dueFirstMs, silentSinceMs, waitsFor, unmarked };
}
