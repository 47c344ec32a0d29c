import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { RelayError } from "../core/errors.ts";
import { uuidV7 } from "../outbox/uuid-v7.ts";
import type { DynamoDbItem, NewIntent } from "./intent-record.ts";

/** DynamoDB's limit is 400 KB; the rest is reserved for the failures that the relay records. */
const ITEM_BYTES_MAX = 368 * 1024;
/** DynamoDB's limit for a partition key: the id is the table's, the type is the index's. */
const KEY_BYTES_MAX = 2_048;

/** The item of a new intent. Throws EVENT_INVALID or EVENT_TOO_LARGE; nothing is written then. */
export function newIntentItem(
  intent: NewIntent,
  now: number,
  sweepAfterMs: number,
): DynamoDbItem & { id: { S: string } } {
  const { correlationId, headers = {}, id = uuidV7(), key, type } = (intent ?? {}) as NewIntent;
  checkKey(intent, "id", id);
  checkKey(intent, "type", type);
  if (typeof headers !== "object" || headers === null) throw invalid(intent, "headers is not an object of strings");
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
    throw new RelayError(
      "EVENT_TOO_LARGE",
      `${what}; at most ${ITEM_BYTES_MAX} are allowed, because DynamoDB's limit is 400 KB. Store large content elsewhere and send a reference.`,
    );
  }
  return item;
}

/** The attributes that put an intent into the index of undelivered intents. */
export function dueAt(type: string, at: number): DynamoDbItem {
  return { retry_type: { S: type }, retry_at: { S: new Date(at).toISOString() } };
}

/** A string or bytes unchanged, anything else as JSON. */
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
  if (json === undefined) throw invalid(intent, "its payload is missing or cannot be written as JSON");
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
  if (bytes > KEY_BYTES_MAX) throw invalid(intent, `${name} has ${bytes} bytes; at most ${KEY_BYTES_MAX} are allowed`);
}

function text(intent: NewIntent, name: string, value: unknown): { S: string } {
  if (typeof value !== "string") throw invalid(intent, `${name} is not a string`);
  // The SDK would silently replace the character.
  if (!value.isWellFormed()) throw invalid(intent, `${name} contains a lone surrogate, which is not valid Unicode`);
  return { S: value };
}

/** The size as DynamoDB counts it: names and values, and a few bytes for each level of a map or list. */
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
