import type { EventHeaders, OutboxEvent } from "../core/event.ts";

/** The message that an intent relay makes of an intent. */
export interface IntentMessage {
  /** An object becomes JSON and gets the `idempotency_key`; text and bytes are sent as they are. */
  readonly body: object | string | Buffer;
  /** Absent: the intent's own key. */
  readonly key?: string | null;
  /** Added to the intent's headers. They cannot change the id. */
  readonly headers?: EventHeaders;
  /** Absent: the target's topic, or the intent's type where the target has none. */
  readonly topic?: string;
}

/** The checked parts of a message. */
export interface Translated {
  readonly topic: string | undefined;
  readonly key: string | null;
  readonly headers: EventHeaders;
  readonly payload: Buffer;
}

const KEY_FIELD = "idempotency_key";
const CONTENT_TYPE = "content-type";

/** Checks and completes what a translation returned. Throws when it cannot be sent. */
export function translatedOf(message: IntentMessage, event: OutboxEvent): Translated {
  if (message === null || typeof message !== "object") {
    throw new Error(`translate returned ${message === null ? "null" : typeof message}, not { body }`);
  }
  if ("then" in message) throw new Error("translate returned a promise: it must be synchronous");
  const { body, headers = {}, key = event.key, topic } = message;
  if (topic !== undefined && (typeof topic !== "string" || topic === "")) throw new Error("the topic is not a text");
  if (key !== null && typeof key !== "string") throw new Error("the key is neither a text nor null");
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== "string") throw new Error(`the header ${JSON.stringify(name)} is not a text`);
  }
  const isJson = typeof body === "object" && body !== null && !Buffer.isBuffer(body);
  return { topic, key, headers: isJson ? jsonHeaders(headers, event) : headers, payload: payloadOf(body, event.id) };
}

function payloadOf(body: IntentMessage["body"] | null | undefined, id: string): Buffer {
  if (Buffer.isBuffer(body)) return body;
  if (typeof body === "string") return Buffer.from(body);
  if (typeof body !== "object" || body === null) throw new Error("translate returned no body");
  const text = JSON.stringify(Array.isArray(body) ? body : withKey(body, id)) as string | undefined;
  if (text === undefined) throw new Error("the body cannot be written as JSON");
  return Buffer.from(text);
}

/** A list has no field for the idempotency key: there only the message's headers carry it. */
function withKey(body: object, id: string): object {
  const own: unknown = Object.hasOwn(body, KEY_FIELD) ? (body as Record<string, unknown>)[KEY_FIELD] : undefined;
  if (own === undefined) return { ...body, [KEY_FIELD]: id };
  if (own !== id) {
    throw new Error(`the body's ${KEY_FIELD} is ${JSON.stringify(own)}; it must be the intent's id, ${id}`);
  }
  return body;
}

/** The content type in the row's headers describes the stored payload, not the new one, and is replaced. */
function jsonHeaders(own: EventHeaders, event: OutboxEvent): EventHeaders {
  const isContentType = (name: string) => name.toLowerCase() === CONTENT_TYPE;
  if (Object.keys(own).some(isContentType)) return own;
  const name = Object.keys(event.headers).find(isContentType) ?? CONTENT_TYPE;
  return { ...own, [name]: "application/json" };
}
