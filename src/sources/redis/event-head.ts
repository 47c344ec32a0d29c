import type { ErrorCode } from "../../core/errors.ts";
import { type EventHeaders, eventBytes } from "../../core/event.ts";
import type { ClaimedEvent, PipelineSpec } from "../../ports/queue-store.ts";
import { listOf, numberOf, type Reply, textOf, textOrNull } from "./redis-replies.ts";

/** An event without its payload: enough to decide whether it is ours and fits into the page. */
export interface EventHead {
  readonly id: string;
  /** In the order of writing; as text, since it is only passed back to the server. */
  readonly sequence: string;
  readonly lane: number;
  readonly type: string;
  readonly key: string | null;
  readonly bytes: number;
  readonly createdMs: number;
  /** Null when the stored value is not a JSON object of strings. */
  readonly headers: EventHeaders | null;
  readonly correlationId: string | null;
  /** A readable list of the parts that are too large to load; '' when there are none. */
  readonly excess: string;
}

/** Parses what `head_row` in the scripts returns. */
export function headOf(reply: Reply): EventHead {
  const [id, sequence, lane, type, key, bytes, created, headers, correlationId, excess] = listOf(reply);
  return {
    id: textOf(id),
    sequence: textOf(sequence),
    lane: numberOf(lane),
    type: textOf(type),
    key: textOrNull(key),
    bytes: numberOf(bytes),
    createdMs: numberOf(created),
    headers: headersOf(textOf(headers)),
    correlationId: textOrNull(correlationId),
    excess: textOf(excess),
  };
}

const NO_BYTES = Buffer.alloc(0);

type Limits = Pick<PipelineSpec, "headersMax" | "payloadBytesMax">;

/** The memory that the event takes with all of its parts. A payload over the limit is never loaded. */
export function loadedBytes(head: EventHead, { payloadBytesMax }: Limits): number {
  const { bytes, createdMs: _, headers, ...texts } = head;
  const size = eventBytes({ ...texts, headers: headers ?? {}, payload: NO_BYTES, createdAt: null });
  return size + (bytes > payloadBytesMax ? 0 : bytes);
}

/** An invalid event is returned without its invalid part; the engine turns it into a dead letter. */
export function claimedEvent(head: EventHead, payload: Buffer, failures: number, limits: Limits): ClaimedEvent {
  const { correlationId, createdMs, headers, id, key, lane, type } = head;
  const fault = faultOf(head, limits);
  return {
    id,
    type,
    key,
    payload: fault === null ? payload : Buffer.alloc(0),
    headers: fault === null ? (headers ?? {}) : {},
    correlationId,
    createdAt: new Date(createdMs).toISOString(),
    lane,
    failures,
    fault,
  };
}

function faultOf(
  { bytes, excess, headers }: EventHead,
  { headersMax, payloadBytesMax }: Limits,
): ClaimedEvent["fault"] {
  if (headers === null) return fault("EVENT_UNREADABLE", "The headers are not a JSON object of strings.");
  if (bytes > payloadBytesMax) {
    return fault("EVENT_TOO_LARGE", `The payload has ${bytes} bytes; the limit is ${payloadBytesMax}.`);
  }
  if (excess !== "") return fault("EVENT_TOO_LARGE", excess.replace(/^t/, "T"));
  const count = Object.keys(headers).length;
  if (count <= headersMax) return null;
  return fault("EVENT_TOO_LARGE", `The event has ${count} headers; the limit is ${headersMax}.`);
}

function fault(code: ErrorCode, reason: string) {
  return { code, reason };
}

function headersOf(text: string): EventHeaders | null {
  if (text === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
    return Object.values(value).every((it) => typeof it === "string") ? (value as EventHeaders) : null;
  } catch {
    return null;
  }
}
