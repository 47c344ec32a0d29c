import { reasonOf } from "../../../core/errors.ts";
import type { EventHeaders } from "../../../core/event.ts";
import type { ClaimedEvent } from "../../../ports/queue-store.ts";
import { readHeaders } from "../headers.ts";
import { type EventLimits, KEPT_BYTES_MAX } from "./row-reader.ts";

const NEW_LINE = 10;
/** Everything but the payload; a longer first line is not a head. */
const HEAD_BYTES_MAX = 256 * 1024;
const NO_BYTES = Buffer.alloc(0);

/**
 * Reads an event from a message of the log: one line of JSON with `id`, `type`, `key`, `headers`, `correlationId` and
 * `createdAt`, then the payload unchanged. `place` identifies a message without an id.
 */
export function readMessageEvent(content: Buffer, place: string, limits: EventLimits): ClaimedEvent {
  const end = content.subarray(0, HEAD_BYTES_MAX).indexOf(NEW_LINE);
  try {
    if (end < 0) throw new SyntaxError("it has no line break after its head");
    const head = headOf(content.toString("utf8", 0, end), limits);
    const bytes = content.length - end - 1;
    const fault = sizeFault(head.id, bytes, limits);
    const isLeftOut = fault !== null && bytes > KEPT_BYTES_MAX;
    const payload = isLeftOut ? NO_BYTES : Buffer.from(content.subarray(end + 1));
    return { ...head, lane: 0, payload, failures: 0, fault };
  } catch (error) {
    const reason = `The message at ${place} is not an event: ${reasonOf(error, 300)}. Expected a line of JSON with id and type, then the payload`;
    return {
      id: place,
      lane: 0,
      type: "",
      key: null,
      payload: Buffer.from(content.subarray(0, KEPT_BYTES_MAX)),
      headers: {},
      correlationId: null,
      createdAt: null,
      failures: 0,
      fault: { code: "EVENT_UNREADABLE", reason },
    };
  }
}

function sizeFault(id: string, bytes: number, { payloadBytesMax }: EventLimits): ClaimedEvent["fault"] {
  if (bytes <= payloadBytesMax) return null;
  const kept = bytes > KEPT_BYTES_MAX ? "; it was too large to be kept" : "";
  const reason = `Event ${id}: the payload has ${bytes} bytes, the limit is ${payloadBytesMax}${kept}`;
  return { code: "EVENT_TOO_LARGE", reason };
}

interface Head {
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly headers: EventHeaders;
  readonly correlationId: string | null;
  readonly createdAt: string | null;
}

function headOf(text: string, limits: EventLimits): Head {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new SyntaxError("its head is not an object");
  const field = (name: string) => textOf(name, Reflect.get(value, name));
  const required = (name: string) => {
    const found = field(name);
    if (found === null || found === "") throw new SyntaxError(`its head has no ${name}`);
    return found;
  };
  const headers: unknown = Reflect.get(value, "headers");
  return {
    id: required("id"),
    type: required("type"),
    key: field("key"),
    headers: headers == null ? {} : readHeaders(JSON.stringify(headers), limits.headersMax),
    correlationId: field("correlationId"),
    createdAt: timeOf(field("createdAt")),
  };
}

function textOf(name: string, value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "string") return value;
  // A longer number would be rounded, and two keys could become one.
  if (Number.isSafeInteger(value)) return String(value);
  throw new SyntaxError(`its ${name} is neither a string nor a safe integer`);
}

function timeOf(text: string | null): string | null {
  const time = text === null ? Number.NaN : Date.parse(text);
  return Number.isNaN(time) ? null : new Date(time).toISOString();
}
