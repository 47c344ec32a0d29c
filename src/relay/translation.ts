import { reasonOf } from "../core/errors.ts";
import type { ClaimedEvent } from "../ports/queue-store.ts";
import { messageOf } from "../routing/routes.ts";
import type { PipelineContext } from "./context.ts";
import { DEFAULT_RETRY, type FailurePolicy } from "./failure-rule.ts";
import type { Entry } from "./lane-queue.ts";

/** The message that the event's route makes of it, or why there is none. */
export function translate(
  { destination, routes }: PipelineContext,
  event: ClaimedEvent,
): Pick<Entry, "message" | "fault"> {
  if (event.fault !== null) return { message: null, fault: event.fault.reason };
  const route = routes.routeOf(event.type, destination.name);
  if (route === undefined) return { message: null, fault: `no route takes events of type ${event.type}` };
  try {
    return { message: messageOf(route, event), fault: null };
  } catch (error) {
    return { message: null, fault: `the route of ${event.type} could not translate it: ${reasonOf(error)}` };
  }
}

export function policyFor({ destination, routes }: PipelineContext, type: string): FailurePolicy {
  const route = routes.routeOf(type, destination.name);
  return { retry: route?.retry ?? DEFAULT_RETRY, onExhausted: route?.onExhausted ?? "park" };
}
