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

/** Hot path: it copies the row's headers only when there are any, and makes the usual ones in one step. */
function headersOf({ correlationId, createdAt, headers: stored, id }: OutboxEvent): EventHeaders {
  const isPlain = isEmpty(stored);
  if (isPlain && correlationId !== null && createdAt !== null) {
    return { "event-id": id, "correlation-id": correlationId, "created-at": isoMilliseconds(createdAt) };
  }
  // A spread, not assignments, because a header may have a name like `__proto__`.
  const headers: Record<string, string> = isPlain ? { "event-id": id } : { ...stored, "event-id": id };
  if (correlationId !== null) headers["correlation-id"] = correlationId;
  if (createdAt !== null) headers["created-at"] = isoMilliseconds(createdAt);
  return headers;
}

/**
 * The time as `Date.toISOString` writes it, with three digits after the point: receivers compare it as text. Other forms
 * stay as they are. Text operations, because parsing a date costs more than the rest of the message.
 */
function isoMilliseconds(time: string): string {
  const { length } = time;
  if (length < 20 || time.charCodeAt(length - 1) !== CODE_OF_Z || time.charCodeAt(10) !== CODE_OF_T) return time;
  if (length === 20) return `${time.slice(0, 19)}.000Z`;
  if (time.charAt(19) !== ".") return time;
  return length >= 24 ? `${time.slice(0, 23)}Z` : `${time.slice(0, -1).padEnd(23, "0")}Z`;
}

const CODE_OF_T = 84;
const CODE_OF_Z = 90;

/** Receivers recognise duplicates by the id alone, so no route can remove or change it. */
function withOwn(defaults: EventHeaders, own: EventHeaders, id: string): EventHeaders {
  return { ...defaults, ...own, "event-id": id };
}

function isEmpty(headers: EventHeaders): boolean {
  for (const _ in headers) return false;
  return true;
}
