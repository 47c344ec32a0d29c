import type { LoggedEvent } from "../ports/event-log.ts";
import type { RequestJob } from "../ports/request-queue.ts";
import { type RequestContext, streamPrefix } from "./request-names.ts";

const TEXT_LENGTH_MAX = 256;

type Referenced = { readonly job: RequestJob } | { readonly fault: string };

/** The job that an event asks for: a reference, and nothing of what the event says. */
export function referenceOf(event: LoggedEvent, context: RequestContext, nowMs: number): Referenced {
  const { data, id: eventId, metadata, stream } = event;
  const id = fieldOf(data, "id");
  if (!isIdentifier(id)) return { fault: `its data has no id of a request: ${described(id)}` };
  const requestId = String(id);
  const tenant = metadata?.tenant ?? tenantIn(stream, requestId, context);
  if (!isIdentifier(tenant))
    return { fault: `neither its metadata nor its stream names a tenant: ${described(tenant)}` };
  if (/[{}]/.test(String(tenant))) return { fault: "the name of its tenant has a brace" };
  const notBefore = metadata?.notBefore;
  const dueMs = notBefore === undefined || notBefore === null ? nowMs : Date.parse(String(notBefore));
  if (Number.isNaN(dueMs)) return { fault: `notBefore is no time: ${described(notBefore)}` };
  return { job: { eventId, tenant: String(tenant), requestId, delayMs: Math.max(0, dueMs - nowMs) } };
}

/** From `<context>.<aggregate>.request-{tenant}-{requestId}`; either part may have dashes, so the id has to be known. */
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

/** Its kind, never its value: nobody knows what stands where an id should. */
function described(value: unknown): string {
  if (value === undefined) return "nothing is there";
  if (value === null) return "it is null";
  return `it is ${Array.isArray(value) ? "a list" : `a ${typeof value}`} of no use`;
}
