import type { ClaimedEvent } from "../ports/queue-store.ts";
import type { PipelineContext } from "./context.ts";
import type { LaneHolds } from "./lane-holds.ts";
import type { Entry } from "./lane-queue.ts";
import { translate } from "./translation.ts";
import type { UnansweredSends } from "./unanswered-sends.ts";

type History = Pick<Entry, "hasFailed" | "isIsolated" | "unansweredSends" | "unansweredSinceMs">;

const NONE: History = { hasFailed: false, isIsolated: false, unansweredSends: 0, unansweredSinceMs: null };

/**
 * What this process knows of an event from earlier attempts, including attempts before the lane was last taken over.
 */
export function historyOf(context: PipelineContext, id: string, holds: LaneHolds, sends: UnansweredSends): History {
  const { destination, name: pipeline } = context;
  if (destination.suspectsNone && sends.isEmpty && holds.size === 0) return NONE;
  const unanswered = sends.ofEvent(id);
  return {
    hasFailed: destination.hasFailed({ pipeline, id }),
    isIsolated: unanswered !== undefined || destination.shouldIsolate({ pipeline, id }),
    unansweredSends: unanswered?.times ?? 0,
    unansweredSinceMs: holds.get(id)?.unansweredSinceMs ?? unanswered?.sinceMs ?? null,
  };
}

/** The delay for a held event that found no room. If its topic takes nothing, there is none before the next probe. */
export function retryDelayMs(context: PipelineContext, event: ClaimedEvent): number {
  const { message } = translate(context, event);
  return context.timing.pollIntervalMs + (message === null ? 0 : context.destination.untilProbeMs(message.topic));
}
