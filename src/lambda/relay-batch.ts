import type { Clock } from "../core/clock.ts";
import type { DynamoDbOutbox } from "../dynamodb/dynamodb-outbox.ts";
import type { IntentRecord } from "../dynamodb/intent-record.ts";
import type { IntentDelivery } from "./intent-delivery.ts";
import type { IntentReports } from "./intent-reports.ts";
import type { BatchResponse, StreamRecord } from "./lambda-events.ts";
import { checkOrigin, readBatch } from "./stream-batch.ts";
import type { TimeLeft } from "./time-left.ts";

/** What one function works with. */
export interface HandlerWorld {
  readonly type: string;
  readonly outbox: DynamoDbOutbox;
  readonly delivery: IntentDelivery;
  readonly reports: IntentReports;
  readonly clock: Clock;
}

/** How much longer than this call a claim lasts: clocks differ. */
const CLAIM_MARGIN_MS = 5_000;

/**
 * Relays what the stream tells. Only what could not be written down is a failure of the batch: AWS goes back to the
 * first of these, and those behind it that are delivered already are not sent again. Throws when the records are none of
 * this outbox.
 */
export async function relayBatch(
  world: HandlerWorld,
  records: readonly StreamRecord[],
  time: TimeLeft,
): Promise<BatchResponse> {
  const { outbox, reports, type } = world;
  checkOrigin(records, outbox.table);
  const { intents, strangers } = readBatch(records, type);
  for (const stranger of strangers) reports.mismatch(stranger.type, stranger.id);
  const undone = await relayNew(world, [...intents.keys()], time);
  const failed = new Set(undone.flatMap((id) => intents.get(id)?.sequenceNumbers ?? []));
  return { batchItemFailures: [...failed].map((itemIdentifier) => ({ itemIdentifier })) };
}

/** Returns the ids of those that have to come again. */
async function relayNew(world: HandlerWorld, ids: readonly string[], time: TimeLeft): Promise<readonly string[]> {
  const { delivery, outbox, reports } = world;
  let chosen: Chosen;
  try {
    const current = await time.within(outbox.read(ids));
    const found = ids.flatMap((id) => current.get(id) ?? []);
    chosen = await choose(world, found, time);
  } catch (error) {
    reports.unsettled(error);
    return ids;
  }
  const { unsettled, untried } = await delivery.deliver(chosen.records, time);
  await release(
    world,
    [...untried].filter((id) => chosen.claimed.has(id)),
    time,
  );
  return ids.filter((id) => unsettled.has(id) || untried.has(id));
}

interface Chosen {
  /** To be sent now, in the order of the stream. */
  readonly records: readonly IntentRecord[];
  /** Those of them that no sweep may take up meanwhile. */
  readonly claimed: ReadonlySet<string>;
}

async function choose(world: HandlerWorld, records: readonly IntentRecord[], time: TimeLeft): Promise<Chosen> {
  const { clock, outbox, reports, type } = world;
  const claim = claimOf(clock, time);
  const wanted = records.filter((record) => {
    if (record.deliveredAt !== null) return false;
    if (record.type !== "" && record.type !== type) {
      reports.mismatch(record.type, record.id);
      return false;
    }
    // What failed before waits for the sweep; what a sweep has in hand is not sent beside it.
    const isWaiting = record.attemptCount > 0 && record.retryAt !== null;
    return !isWaiting && (record.claimedUntil === null || record.claimedUntil <= claim.nowIso);
  });
  // A sweep could take up so late ones while they are being sent here.
  const late = wanted.filter(({ retryAt }) => retryAt !== null && retryAt <= claim.untilIso).map(({ id }) => id);
  const got = await time.within(outbox.claim(late, { ...claim, dueBeforeIso: claim.untilIso }));
  const claimed = new Set(got.map(({ id }) => id));
  const others = new Set(late.filter((id) => !claimed.has(id)));
  return { records: wanted.filter(({ id }) => !others.has(id)), claimed };
}

/** Lets go of what there was no time for. If that fails, it becomes due by itself a little later. */
export async function release({ outbox }: HandlerWorld, ids: readonly string[], time: TimeLeft): Promise<void> {
  if (ids.length > 0) await time.within(outbox.release(ids)).catch(() => {});
}

/** A claim that outlives this call, in case that the function dies with it. */
export function claimOf(clock: Clock, time: TimeLeft): { readonly nowIso: string; readonly untilIso: string } {
  const now = clock.wallMs();
  const until = now + time.writeMs + CLAIM_MARGIN_MS;
  return { nowIso: new Date(now).toISOString(), untilIso: new Date(until).toISOString() };
}
