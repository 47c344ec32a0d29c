import { RelayError, reasonOf } from "../core/errors.ts";
import type { Hold } from "../core/hold.ts";
import type { Failure } from "../ports/queue-store.ts";

/**
 * Events that a crashing lane stores before it sends them, so that the next owner knows which events were being sent.
 * The note counts as one crash per ownership of the lane, however often the event is sent.
 */
export class Suspects {
  readonly #underWay = new Set<string>();
  /** Held events that were handed back. Their note stays in their hold; other notes go with the hand-back. */
  readonly #noted = new Set<string>();

  has(id: string): boolean {
    return this.#underWay.has(id);
  }

  isNoted(id: string): boolean {
    return this.#underWay.has(id) || this.#noted.has(id);
  }

  add(id: string, isHead: boolean): void {
    this.#underWay.add(id);
    if (isHead) this.#noted.add(id);
  }

  /** The ids of all events with a note of this lane. */
  ids(): string[] {
    return [...this.#underWay, ...this.#noted];
  }

  /** The lane's claim of the event ended, with whatever outcome. */
  finished(id: string): void {
    if (this.#underWay.size > 0) this.#underWay.delete(id);
  }

  /** The event's failure is durable, which has replaced the note. */
  failed(id: string): void {
    this.#noted.delete(id);
  }

  /** True when the event has a note, which must be deleted when its row is marked. */
  delivered(id: string): boolean {
    if (this.#noted.size === 0 && this.#underWay.size === 0) return false;
    return this.#noted.delete(id) || this.#underWay.has(id);
  }
}

/** After this many crashes during the send of the same event, the event becomes a dead letter. */
const CRASHES_MAX = 3;

/**
 * After crashes a lane claims fewer events, half as many with each crash, until the event that causes them is alone.
 */
export function claimSize(share: number, batchSize: number, crashes: number): number {
  return crashes === 0 ? share : Math.min(share, halved(batchSize, crashes));
}

/** Halves the size so many times, down to one. Not a bit shift: that would wrap around after 32 times. */
export function halved(size: number, times: number): number {
  return Math.max(1, Math.floor(size / 2 ** times));
}

/**
 * The events that were being sent at each of several crashes, as failures: they become dead letters and are not sent.
 */
export function crashPoison(holds: readonly Hold[]): Failure[] {
  return holds
    .filter(({ state, crashes }) => state === "suspect" && crashes >= CRASHES_MAX)
    .map(({ id, key, attempts, crashes }) => {
      const error = new RelayError(
        "CRASH_POISON",
        `The relay's process ended ${crashes} times while it sent event ${id}.`,
      );
      return { id, key, reason: reasonOf(error), attempts: attempts + 1, next: { kind: "dead", parks: true } };
    });
}
