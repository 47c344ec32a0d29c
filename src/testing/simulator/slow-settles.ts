import { RelayError } from "../../core/errors.ts";
import type { Settlement } from "../../ports/queue-store.ts";
import { rowsOf } from "../../relay/settle-parts.ts";
import corpus from "./corpus.json" with { type: "json" };
import { SeededRandom } from "./seeded-random.ts";
import type { SimProcess } from "./sim-process.ts";

/** A trigger that takes time for every row: a settle that would exceed the limit always times out. */
export interface SlowSettles {
  readonly rowMs: number;
  readonly limitMs: number;
}

const SHARE = 0.15;

/** A persistent fault, which stays after all others are over. Older seeds keep their scenarios. */
export function slowSettlesOf(seed: number): SlowSettles | null {
  const random = new SeededRandom(seed, 6);
  const isOlder = corpus.seeds.includes(seed) || corpus.plain.includes(seed);
  if (!random.chance(SHARE) || isOlder) return null;
  const rowMs = random.int(1, 20);
  return { rowMs, limitMs: rowMs * random.pick([1, 2, 3, 10]) };
}

/** Waits as long as the rows take. Throws if that exceeds the limit; then nothing was written. */
export async function takeTime(slow: SlowSettles | null, process: SimProcess, settlement: Settlement): Promise<void> {
  if (slow === null) return;
  const neededMs = slow.rowMs * rowsOf(settlement);
  await process.clock.sleep(Math.min(neededMs, slow.limitMs));
  if (neededMs > slow.limitMs) throw new RelayError("DATABASE_BUSY", "the settle timed out.");
}
