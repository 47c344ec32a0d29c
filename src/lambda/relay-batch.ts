import type { Clock } from "../core/clock.ts";
import type { DynamoDbOutbox } from "../dynamodb/dynamodb-outbox.ts";
import type { IntentRecord } from "../dynamodb/intent-record.ts";
import type { IntentDelivery } from "./intent-delivery.ts";
import type { IntentReports } from "./intent-reports.ts";
import type { BatchResponse, StreamRecord } from "./lambda-events.ts";
import { checkOrigin, readBatch } from "./stream-batch.ts";
import type { TimeLeft } from "./time-left.ts";

/** The parts of one function. */
interface HandlerContext {
  readonly type: string;
  readonly outbox: DynamoDbOutbox;
  readonly delivery: IntentDelivery;
  readonly reports: IntentReports;
  readonly clock: Clock;
}

/** How much longer than this call a claim lasts, because clocks differ. */
const CLAIM_MARGIN_MS = 5_000;

/**
 * Relays the records of the stream. Only an intent whose outcome could not be recorded fails in the batch: AWS delivers
 * again from the first of these, and later intents that are already delivered are not sent again. Throws when the
 * records are not from this outbox.
 */
export async function relayBatch(
  context: HandlerContext,
  records: readonly StreamRecord[],
  time: TimeLeft,
): Promise<BatchResponse> {
  const { outbox, reports, type } = context;
  checkOrigin(records, outbox.table);
  const { intents, mismatches } = readBatch(records, type);
  for (const mismatch of mismatches) reports.mismatch(mismatch.type, mismatch.id);
  const undone = await relayNew(context, [...intents.keys()], time);
  const failed = new Set(undone.flatMap((id) => intents.get(id)?.sequenceNumbers ?? []));
  return { batchItemFailures: [...failed].map((itemIdentifier) => ({ itemIdentifier })) };
}

/** Returns the ids of intents that AWS must deliver again. */
async function relayNew(context: HandlerContext, ids: readonly string[], time: TimeLeft): Promise<readonly string[]> {
  const { delivery, outbox, reports } = context;
  let chosen: Chosen;
  try {
    const current = await time.within(outbox.read(ids));
    const found = ids.flatMap((id) => current.get(id) ?? []);
    chosen = await choose(context, found, time);
  } catch (error) {
    reports.unsettled(error);
    return ids;
  }
  const { unsettled, untried } = await delivery.deliver(chosen.records, time);
  await release(
    context,
    [...untried].filter((id) => chosen.claimed.has(id)),
    time,
  );
  return ids.filter((id) => unsettled.has(id) || untried.has(id));
}

interface Chosen {
  /** The intents to send now, in the order of the stream. */
  readonly records: readonly IntentRecord[];
  /** Those of them that are claimed, so that no sweep sends them at the same time. */
  readonly claimed: ReadonlySet<string>;
}

async function choose(context: HandlerContext, records: readonly IntentRecord[], time: TimeLeft): Promise<Chosen> {
  const { clock, outbox, reports, type } = context;
  const claim = claimOf(clock, time);
  const wanted = records.filter((record) => {
    if (record.deliveredAt !== null) return false;
    if (record.type !== "" && record.type !== type) {
      reports.mismatch(record.type, record.id);
      return false;
    }
    // An intent that failed before waits for the sweep, and one that a sweep has claimed is not sent twice.
    const isWaiting = record.attemptCount > 0 && record.retryAt !== null;
    return !isWaiting && (record.claimedUntil === null || record.claimedUntil <= claim.nowIso);
  });
  // Claim intents that are already due, because a sweep could send them at the same time.
  const late = wanted.filter(({ retryAt }) => retryAt !== null && retryAt <= claim.untilIso).map(({ id }) => id);
  const got = await time.within(outbox.claim(late, { ...claim, dueBeforeIso: claim.untilIso }));
  const claimed = new Set(got.map(({ id }) => id));
  const others = new Set(late.filter((id) => !claimed.has(id)));
  return { records: wanted.filter(({ id }) => !others.has(id)), claimed };
}

/** Releases intents that there was no time for. If that fails, they become due when the claim expires. */
async function release({ outbox }: HandlerContext, ids: readonly string[], time: TimeLeft): Promise<void> {
  if (ids.length > 0) await time.within(outbox.release(ids)).catch(() => {});
}

/** A claim that outlasts this call, in case the function dies. */
function claimOf(clock: Clock, time: TimeLeft): { readonly nowIso: string; readonly untilIso: string } {
  const now = clock.wallMs();
  const until = now + time.writeMs + CLAIM_MARGIN_MS;
  return { nowIso: new Date(now).toISOString(), untilIso: new Date(until).toISOString() };
}

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
