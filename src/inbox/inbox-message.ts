import { RelayError } from "../core/errors.ts";

/** An event as a consumer gets it, whichever broker brought it. */
export interface InboxMessage {
  /** The event's id, by which a second delivery is recognised. */
  readonly id: string;
  readonly type: string;
  /** The unit of order; null for an event without. */
  readonly key: string | null;
  readonly correlationId: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Buffer;
  /** The payload as JSON. Throws EVENT_INVALID when it is not JSON. */
  json<Value = unknown>(): Value;
}

interface Parts {
  readonly id: string | undefined;
  readonly type: string | undefined;
  readonly key: string | null | undefined;
  readonly correlationId?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Buffer;
}

/** Throws EVENT_INVALID for a message that does not carry an event's id. `from` is the broker, for the error. */
export function inboxMessage(from: string, { correlationId, headers, id, key, payload, type }: Parts): InboxMessage {
  if (!id) {
    throw new RelayError(
      "EVENT_INVALID",
      `A message from ${from} has no event id, so duplicates cannot be detected; outbox-relay sends one with each event`,
    );
  }
  return {
    id,
    type: type ?? headers["ce-type"] ?? headers.ce_type ?? "",
    key: key ?? null,
    correlationId: correlationId ?? headers["correlation-id"] ?? null,
    headers,
    payload,
    json: <Value>() => parsed<Value>(id, payload),
  };
}

function parsed<Value>(id: string, payload: Buffer): Value {
  try {
    return JSON.parse(payload.toString("utf8")) as Value;
  } catch (cause) {
    throw new RelayError("EVENT_INVALID", `The payload of event ${id} is not JSON`, { cause });
  }
}

/** A value of a header as text: clients give text, bytes, numbers or lists of these. */
export function headerText(value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (Array.isArray(value)) return headerText(value.at(-1));
  return value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : String(value);
}

/** Headers of any client as text by name; those without a value are left out. */
export function textHeaders(entries: Iterable<readonly [name: unknown, value: unknown]>): Record<string, string> {
  const texts = [...entries].flatMap(([name, value]) => {
    const text = headerText(value);
    return text === undefined ? [] : [[headerText(name) ?? "", text] as const];
  });
  return Object.fromEntries(texts);
}
