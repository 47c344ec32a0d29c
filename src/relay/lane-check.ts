import { RelayError, tookNoEffect } from "../core/errors.ts";
import type { Grant, LaneState } from "../ports/queue-store.ts";
import type { PipelineContext } from "./context.ts";
import { endsWithin } from "./deadline.ts";

/**
 * True when the stored lane is what its owner believes it to be. It is not when another instance owns it. Nor is it
 * when the stored batch is behind the batch that was acknowledged before the read began, or the database is on another
 * timeline: it may have lost its last commits, and memory then contradicts the rows.
 */
export function isUnchanged(grant: Grant, settledBatch: bigint, seen: LaneState | undefined): boolean {
  if (seen?.owner !== grant.owner || seen.epoch !== grant.epoch) return false;
  return seen.settledBatch >= settledBatch && (seen.timeline ?? grant.timeline) === grant.timeline;
}

/** The error of a lane that has changed under its owner. */
export function laneMoved(pipeline: string, lane: number): RelayError {
  return new RelayError(
    "FENCED",
    `Lane ${lane} of ${pipeline} has another owner, or the database lost its last commits.`,
  );
}

/** Ignores an error of a call that had no effect: the next call does the same work. Other errors are thrown again. */
export function nullIfRefused(error: unknown): null {
  if (!tookNoEffect(error)) throw error;
  return null;
}

/**
 * Waits for a publisher to end, but no longer than a lease: a publisher that is stuck must not block the lane for ever.
 */
export async function endOrReportStuck(
  context: PipelineContext,
  lane: number,
  ending: Promise<unknown>,
): Promise<void> {
  const { clock, events, name: pipeline, timing } = context;
  if (await endsWithin(clock, timing.leaseMs, ending)) return;
  events.emit("PublishStuck", { pipeline, lane, afterMs: timing.leaseMs });
}
