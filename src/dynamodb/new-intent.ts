import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { RelayError } from "../core/errors.ts";
import { uuidV7 } from "../outbox/uuid-v7.ts";
import type { Item, NewIntent } from "./intent-record.ts";

/** DynamoDB takes 400 KB an item; the rest is for what the relay writes down of failures. */
const ITEM_BYTES_MAX = 368 * 1024;
/** Of a partition key, which the id is of the table and the type of the index. */
const KEY_BYTES_MAX = 2_048;

/** The item of a new intent. Throws EVENT_INVALID or EVENT_TOO_LARGE; nothing is written then. */
export function newIntentItem(intent: NewIntent, now: number, sweepAfterMs: number): Item & { id: { S: string } } {
  const { correlationId, headers = {}, id = uuidV7(), key, type } = (intent ?? {}) as NewIntent;
  checkKey(intent, "id", id);
  checkKey(intent, "type", type);
  if (typeof headers !== "object" || headers === null) throw invalid(intent, "headers is no object of texts");
  const names = Object.keys(headers);
  const item = {
    id: { S: id },
    intent: { M: { type: { S: type }, payload: payloadOf(intent) } },
    ...(key === undefined || key === null ? {} : { key: text(intent, "key", key) }),
    ...(names.length === 0
      ? {}
      : { headers: { M: Object.fromEntries(names.map((name) => [name, headerOf(intent, name, headers[name])])) } }),
    ...(correlationId === undefined || correlationId === null
      ? {}
      : { correlation_id: text(intent, "correlationId", correlationId) }),
    created_at: { S: new Date(now).toISOString() },
    attempt_count: { N: "0" },
    ...dueAt(type, now + sweepAfterMs),
  };
  const bytes = sizeOf({ M: item });
  if (bytes > ITEM_BYTES_MAX) {
    const what = `The intent ${id} of type ${JSON.stringify(type)} would be an item of ${bytes} bytes`;
    throw new RelayError("EVENT_TOO_LARGE", `${what}, and ${ITEM_BYTES_MAX} are the most: DynamoDB takes 400 KB.`);
  }
  return item;
}

/** The attributes that put an intent into the index of what is to be relayed. */
export function dueAt(type: string, at: number): Item {
  return { retry_type: { S: type }, retry_at: { S: new Date(at).toISOString() } };
}

/** A text or bytes as they are, anything else as JSON. */
function payloadOf(intent: NewIntent): AttributeValue {
  const { payload } = intent;
  if (payload instanceof Uint8Array) return { B: payload };
  if (typeof payload === "string") return text(intent, "payload", payload);
  let json: string | undefined;
  try {
    json = JSON.stringify(payload);
  } catch (error) {
    throw invalid(intent, `its payload cannot be written as JSON: ${(error as Error).message}`);
  }
  if (json === undefined) throw invalid(intent, "its payload is missing or no JSON");
  return { S: json };
}

function headerOf(intent: NewIntent, name: string, value: unknown): AttributeValue {
  if (name === "") throw invalid(intent, "a header has no name");
  return text(intent, `the header ${JSON.stringify(name)}`, value);
}

function checkKey(intent: NewIntent, name: string, value: unknown): void {
  text(intent, name, value);
  const bytes = Buffer.byteLength(value as string);
  if (bytes === 0) throw invalid(intent, `${name} is empty`);
  if (bytes > KEY_BYTES_MAX) throw invalid(intent, `${name} has ${bytes} bytes, more than ${KEY_BYTES_MAX}`);
}

function text(intent: NewIntent, name: string, value: unknown): { S: string } {
  if (typeof value !== "string") throw invalid(intent, `${name} is no text`);
  // The SDK would put another character in its place without a word.
  if (!value.isWellFormed()) throw invalid(intent, `${name} contains half a surrogate pair, which is no Unicode`);
  return { S: value };
}

/** As DynamoDB counts: names and values, with a few bytes for each level of a map or list. */
function sizeOf(value: AttributeValue): number {
  if (value.S !== undefined) return Buffer.byteLength(value.S);
  if (value.B !== undefined) return value.B.byteLength;
  if (value.N !== undefined) return value.N.length;
  const entries = Object.entries(value.M ?? {});
  return entries.reduce((sum, [name, part]) => sum + Buffer.byteLength(name) + sizeOf(part) + 1, 3);
}

function invalid(intent: NewIntent, what: string): RelayError {
  const type = typeof intent?.type === "string" ? ` of type ${JSON.stringify(intent.type.slice(0, 100))}` : "";
  return new RelayError("EVENT_INVALID", `The intent${type} cannot be written: ${what}.`);
}
