import type { LoggedEvent } from "../ports/event-log.ts";
import type { RequestContext, RequestJob } from "../ports/request-queue.ts";
import { streamPrefix } from "./request-names.ts";

const TEXT_LENGTH_MAX = 256;

type Referenced = { readonly job: RequestJob } | { readonly fault: string };

/** The job that an event requests: a reference without any of the event's data. */
export function referenceOf(event: LoggedEvent, context: RequestContext, nowMs: number): Referenced {
  const { data, id: eventId, metadata, stream } = event;
  const id = fieldOf(data, "id");
  if (!isIdentifier(id)) return { fault: `its data has no valid request id: ${described(id)}` };
  const requestId = String(id);
  const tenant = metadata?.tenant ?? tenantIn(stream, requestId, context);
  if (!isIdentifier(tenant))
    return { fault: `neither its metadata nor its stream name has a valid tenant: ${described(tenant)}` };
  if (/[{}]/.test(String(tenant))) return { fault: "its tenant contains a brace" };
  const notBefore = metadata?.notBefore;
  const dueMs = notBefore === undefined || notBefore === null ? nowMs : Date.parse(String(notBefore));
  if (Number.isNaN(dueMs)) return { fault: `notBefore is not a valid time: ${described(notBefore)}` };
  return { job: { eventId, tenant: String(tenant), requestId, delayMs: Math.max(0, dueMs - nowMs) } };
}

/**
 * Parses `<context>.<aggregate>.request-{tenant}-{requestId}`. Both parts may contain dashes, so the id must be known.
 */
function tenantIn(stream: string, requestId: string, context: RequestContext): string | undefined {
  const prefix = streamPrefix(context);
  const end = `-${requestId}`;
  if (!stream.startsWith(prefix) || !stream.endsWith(end)) return undefined;
  return stream.slice(prefix.length, -end.length);
}

function fieldOf(data: unknown, name: string): unknown {
  return typeof data === "object" && data !== null && Object.hasOwn(data, name)
    ? (data as Record<string, unknown>)[name]
    : undefined;
}

function isIdentifier(value: unknown): value is string | number {
  if (typeof value === "number") return Number.isSafeInteger(value);
  return typeof value === "string" && value !== "" && value.length <= TEXT_LENGTH_MAX && value.isWellFormed();
}

/** Describes the kind, never the value: anything, also a secret, may be in the place of an id. */
function described(value: unknown): string {
  if (value === undefined) return "it is missing";
  if (value === null) return "it is null";
  return `it is ${Array.isArray(value) ? "a list" : `an unusable ${typeof value}`}`;
}
