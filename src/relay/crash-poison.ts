import { RelayError, reasonOf } from "../core/errors.ts";
import type { Hold } from "../core/hold.ts";
import type { Failure } from "../ports/queue-store.ts";

/** So many crashes while one and the same event was being sent make it a dead letter. */
const CRASHES_MAX = 3;

/** After crashes only small claims are made, half as large with each, so that their cause can be told apart. */
export function claimSize(share: number, batchSize: number, crashes: number): number {
  return crashes === 0 ? share : Math.min(share, halved(batchSize, crashes));
}

/** Half as much each time, and never nothing. No shift, which would start anew after 32 times. */
export function halved(size: number, times: number): number {
  return Math.max(1, Math.floor(size / 2 ** times));
}

/** Events that were being sent at each of several crashes: they are not sent again. */
export function crashPoison(holds: readonly Hold[]): Failure[] {
  return holds
    .filter(({ state, crashes }) => state === "suspect" && crashes >= CRASHES_MAX)
    .map(({ id, key, attempts, crashes }) => {
      const error = new RelayError("CRASH_POISON", `The relay ended ${crashes} times while sending event ${id}.`);
      return { id, key, reason: reasonOf(error), attempts: attempts + 1, next: { kind: "dead", parks: true } };
    });
}
