import type { IntentRecord } from "../dynamodb/intent-record.ts";
import type { BatchResponse } from "./lambda-events.ts";
import { claimOf, type HandlerContext, release } from "./relay-batch.ts";
import type { TimeLeft } from "./time-left.ts";

/** Intents that are claimed together. */
const SWEEP_SIZE = 100;
/** Claims of one intent without a recorded outcome, after which the intent is presumed to kill the function. */
const CLAIMS_MAX = 4;
const POISON = `The function died ${CLAIMS_MAX} times while it held this intent`;

/**
 * Relays due intents: failed ones whose retry is due, and those that the stream's function never relayed. Throws when
 * DynamoDB cannot be read. An intent whose outcome could not be recorded becomes due again when its claim expires.
 */
export async function sweep(context: HandlerContext, time: TimeLeft): Promise<BatchResponse> {
  const { clock, outbox, reports, type } = context;
  const seen = new Set<string>();
  while (time.canSend) {
    const claim = claimOf(clock, time);
    const due = await time.within(outbox.due(type, claim.nowIso, SWEEP_SIZE));
    // The index lags: intents relayed just now may still be in it.
    const fresh = due.filter((id) => !seen.has(id));
    if (fresh.length === 0) break;
    for (const id of fresh) seen.add(id);
    await relayClaimed(context, await time.within(outbox.claim(fresh, { ...claim, dueBeforeIso: claim.nowIso })), time);
  }
  reports.countDeadLetters(await time.within(outbox.deadLetterDepth(type)));
  return { batchItemFailures: [] };
}

/** Sends suspects last and one by one: if one kills the function, the outcomes of the others are already recorded. */
async function relayClaimed(context: HandlerContext, claimed: readonly IntentRecord[], time: TimeLeft): Promise<void> {
  const { delivery } = context;
  const untried = new Set((await delivery.deliver(claimed.filter(isHarmless), time)).untried);
  for (const suspect of claimed.filter((record) => !isHarmless(record))) {
    if (suspect.claims > CLAIMS_MAX) await delivery.deadLetter(suspect, POISON, time);
    else for (const id of (await delivery.deliver([suspect], time)).untried) untried.add(id);
  }
  await release(context, [...untried], time);
}

function isHarmless({ claims }: IntentRecord): boolean {
  return claims <= 1;
}
