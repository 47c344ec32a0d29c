import type { IntentRecord } from "../dynamodb/intent-record.ts";
import type { BatchResponse } from "./lambda-events.ts";
import { claimOf, type HandlerWorld, release } from "./relay-batch.ts";
import type { TimeLeft } from "./time-left.ts";

/** Intents that are taken up together. */
const SWEEP_SIZE = 100;
/** So often an intent is taken up without anything being written down of it: then it ended the function each time. */
const CLAIMS_MAX = 4;
const POISON = `It was taken up ${CLAIMS_MAX} times and each time the function ended before it was done`;

/**
 * Relays what is due: intents that failed and may be tried again, and those that the stream's function never came to.
 * Throws when DynamoDB cannot be read; what could not be written down becomes due again by itself.
 */
export async function sweep(world: HandlerWorld, time: TimeLeft): Promise<BatchResponse> {
  const { clock, outbox, reports, type } = world;
  const seen = new Set<string>();
  while (time.canSend) {
    const claim = claimOf(clock, time);
    const due = await time.within(outbox.due(type, claim.nowIso, SWEEP_SIZE));
    // The index lags behind: what was relayed just now may still stand in it.
    const fresh = due.filter((id) => !seen.has(id));
    if (fresh.length === 0) break;
    for (const id of fresh) seen.add(id);
    await relayClaimed(world, await time.within(outbox.claim(fresh, { ...claim, dueBeforeIso: claim.nowIso })), time);
  }
  reports.countDeadLetters(await time.within(outbox.deadLetterDepth(type)));
  return { batchItemFailures: [] };
}

/** What may have ended the function goes last and alone, so that the others are written down by then. */
async function relayClaimed(world: HandlerWorld, claimed: readonly IntentRecord[], time: TimeLeft): Promise<void> {
  const { delivery } = world;
  const untried = new Set((await delivery.deliver(claimed.filter(isHarmless), time)).untried);
  for (const suspect of claimed.filter((record) => !isHarmless(record))) {
    if (suspect.claims > CLAIMS_MAX) await delivery.bury(suspect, POISON, time);
    else for (const id of (await delivery.deliver([suspect], time)).untried) untried.add(id);
  }
  await release(world, [...untried], time);
}

function isHarmless({ claims }: IntentRecord): boolean {
  return claims <= 1;
}
