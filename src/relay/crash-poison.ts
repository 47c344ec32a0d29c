import { RelayError, reasonOf } from "../core/errors.ts";
import type { Hold } from "../core/hold.ts";
import type { Failure } from "../ports/queue-store.ts";

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
