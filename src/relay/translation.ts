import { isRelayError, reasonOf } from "../core/errors.ts";
import type { ClaimedEvent } from "../ports/queue-store.ts";
import { messageOf } from "../routing/routes.ts";
import type { PipelineContext } from "./context.ts";
import { DEFAULT_RETRY, type FailurePolicy } from "./failure-rule.ts";
import type { Entry } from "./lane-queue.ts";

/** The message that the event's route makes of it, or the reason why there is none. */
export function translate(
  { destination, events, name, routes }: PipelineContext,
  event: ClaimedEvent,
): Pick<Entry, "message" | "fault" | "faultError"> {
  if (event.fault !== null) return faulty(event.fault.reason);
  const route = routes.routeOf(event, destination.name);
  if (route === undefined) return faulty(`no route matches events of type ${event.type}`);
  try {
    return {
      message: messageOf(route, event, destination.publisher.capabilities.attributePrefix),
      fault: null,
      faultError: null,
    };
  } catch (error) {
    if (isRelayError(error, "RELAY_MISMATCH")) {
      events.emit("RelayMismatch", { pipeline: name, intentType: event.type, count: 1, recordId: event.id });
    }
    return faulty(`the route of ${event.type} could not translate it: ${reasonOf(error)}`, error);
  }
}

function faulty(fault: string, faultError: unknown = null) {
  return { message: null, fault, faultError };
}

/**
 * The failure policy of an event. An unreadable event may lack what its route's conditions need; its type then decides.
 */
export function policyFor({ destination, routes }: PipelineContext, event: ClaimedEvent): FailurePolicy {
  const route = routes.routeOf(event, destination.name) ?? routes.routeOfType(event.type, destination.name);
  return { retry: route?.retry ?? DEFAULT_RETRY, onExhausted: route?.onExhausted ?? "park" };
}
