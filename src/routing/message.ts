import type { EventHeaders, Message, OutboxEvent } from "../core/event.ts";
import { enveloped } from "./envelope.ts";
import type { Route } from "./routes.ts";

/** The default prefix, as the CloudEvents bindings of HTTP and NATS define it. */
const ATTRIBUTE_PREFIX = "ce-";

/**
 * The message that a route makes of an event. By default the topic is the type, the key is the key, and the headers are
 * those of the row and the relay's own. Throws what the route's own functions throw: the event cannot be routed then.
 */
export function messageOf(route: Route, event: OutboxEvent, attributePrefix = ATTRIBUTE_PREFIX): Message {
  const headers =
    route.headers === undefined ? headersOf(event) : withOwn(headersOf(event), route.headers(event), event.id);
  const payload = route.payload === undefined ? event.payload : route.payload(event);
  const topic = route.topic === undefined ? event.type : route.topic(event);
  const key = route.key === undefined ? event.key : route.key(event);
  if (route.envelope === undefined) return { event, topic, key, headers, payload };
  return { event, topic, key, ...enveloped(route.envelope, event, { headers, payload }, attributePrefix) };
}

/** Hot path: it copies the row's headers only when there are any. */
function headersOf(event: OutboxEvent): EventHeaders {
  // A spread, not assignments, because a header may have a name like `__proto__`.
  const headers: Record<string, string> = isEmpty(event.headers)
    ? { "event-id": event.id }
    : { ...event.headers, "event-id": event.id };
  if (event.correlationId !== null) headers["correlation-id"] = event.correlationId;
  if (event.createdAt !== null) headers["created-at"] = event.createdAt;
  return headers;
}

/** Receivers recognise duplicates by the id alone, so no route can remove or change it. */
function withOwn(defaults: EventHeaders, own: EventHeaders, id: string): EventHeaders {
  return { ...defaults, ...own, "event-id": id };
}

function isEmpty(headers: EventHeaders): boolean {
  for (const _ in headers) return false;
  return true;
}
