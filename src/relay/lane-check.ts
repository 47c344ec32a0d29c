import { RelayError, tookNoEffect } from "../core/errors.ts";
import type { Grant, LaneState } from "../ports/queue-store.ts";
import type { PipelineContext } from "./context.ts";
import { endsWithin } from "./deadline.ts";

/**
 * Whether a lane is what its owner believes it to be. One in other hands is not, and neither is one behind what was
 * acknowledged before the look began, or in another line of the database's history: it may have forgotten its last
 * commits, and with them what memory takes for done or for waiting.
 */
export function isAsLeft(grant: Grant, settledBatch: bigint, seen: LaneState | undefined): boolean {
  if (seen?.owner !== grant.owner || seen.epoch !== grant.epoch) return false;
  return seen.settledBatch >= settledBatch && (seen.timeline ?? grant.timeline) === grant.timeline;
}

export function strayed(pipeline: string, lane: number): RelayError {
  return new RelayError("FENCED", `Lane ${lane} of ${pipeline} is not as this instance left it.`);
}

/** What the source refused changed nothing; the next time will do. */
export function nullIfRefused(error: unknown): null {
  if (!tookNoEffect(error)) throw error;
  return null;
}

/** A publisher that does not give up what it is sending must not keep the lane from everybody for ever. */
export async function letGo(context: PipelineContext, lane: number, ending: Promise<unknown>): Promise<void> {
  const { clock, events, name: pipeline, timing } = context;
  if (await endsWithin(clock, timing.leaseMs, ending)) return;
  events.emit("PublishStuck", { pipeline, lane, afterMs: timing.leaseMs });
}
