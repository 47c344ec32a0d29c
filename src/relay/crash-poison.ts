import { RelayError, reasonOf } from "../core/errors.ts";
import type { Hold } from "../core/hold.ts";
import type { Failure } from "../ports/queue-store.ts";

/** So many crashes while one and the same event was being sent make it a dead letter. */
const CRASHES_MAX = 3;

/** After crashes only small claims are made, half as large with each, so that their cause can be told apart. */
export function claimSize(share: number, batchSize: number, crashes: number): number {
  return crashes === 0 ? share : Math.max(1, Math.min(share, batchSize >> crashes));
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
