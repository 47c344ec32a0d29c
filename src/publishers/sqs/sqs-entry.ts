import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import type { MessageAttributeValue } from "@aws-sdk/client-sqs";
import { dedupeId } from "../../core/dedupe-id.ts";
import type { Message } from "../../core/event.ts";

/** A message in the form of SQS, without its id within the batch. */
export interface SqsEntry {
  readonly body: string;
  readonly attributes: Record<string, MessageAttributeValue>;
  readonly groupId: string | null;
  readonly dedupeId: string | null;
  readonly bytes: number;
}

const ATTRIBUTES_MAX = 10;
const ENCODING = "payload-encoding";
const PACKED = "headers";
const TOPIC = "topic";
const KEY = "partition-key";

/** SQS carries only the characters that are legal in XML. */
const LEGAL_TEXT = /^[\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u;
const LEGAL_ID = /^[!-~]{1,128}$/;
const LEGAL_NAME = /^(?!aws\.|amazon\.|\.)(?!.*\.\.)(?!.*\.$)[\w.-]{1,256}$/i;

/** Converts a message. */
export function sqsEntry(message: Message, isFifo: boolean): SqsEntry {
  const { body, encoding } = bodyOf(message.payload);
  const attributes = attributesOf(message, encoding);
  let bytes = Buffer.byteLength(body);
  for (const name in attributes) {
    const { DataType, StringValue } = attributes[name]!;
    bytes += name.length + DataType!.length + Buffer.byteLength(StringValue!);
  }
  if (!isFifo) return { body, attributes, groupId: null, dedupeId: null, bytes };
  const groupId = legalId(message.key ?? message.event.id);
  return { body, attributes, groupId, dedupeId: legalId(dedupeId(message)), bytes };
}

/** Text unchanged, anything that SQS cannot carry as base64, and an empty body, which SQS rejects, as a dash. */
function bodyOf(payload: Buffer): { readonly body: string; readonly encoding: string | null } {
  if (payload.length === 0) return { body: "-", encoding: "empty" };
  if (isUtf8(payload)) {
    const body = payload.toString("utf8");
    if (LEGAL_TEXT.test(body)) return { body, encoding: null };
  }
  return { body: payload.toString("base64"), encoding: "base64" };
}

/**
 * One attribute per header. If those are too many, or one of them is illegal, all headers go as JSON into a single
 * attribute.
 */
function attributesOf(message: Message, encoding: string | null): Record<string, MessageAttributeValue> {
  const own: Record<string, string> = Object.create(null);
  for (const name in message.headers) own[name] = message.headers[name]!;
  own[TOPIC] = message.topic;
  if (message.key !== null) own[KEY] = message.key;
  const attributes: Record<string, MessageAttributeValue> = {};
  if (encoding !== null) attributes[ENCODING] = text(encoding);
  const names = Object.keys(own);
  const fits = names.length + Object.keys(attributes).length <= ATTRIBUTES_MAX;
  if (fits && names.every((name) => isLegal(name, own[name]!))) {
    for (const name of names) attributes[name] = text(own[name]!);
    return attributes;
  }
  attributes[PACKED] = text(packed(own));
  if (isLegal("event-id", message.event.id)) attributes["event-id"] = text(message.event.id);
  return attributes;
}

function isLegal(name: string, value: string): boolean {
  return value !== "" && name !== ENCODING && name !== PACKED && LEGAL_NAME.test(name) && LEGAL_TEXT.test(value);
}

/** JSON escapes every character that SQS cannot carry except these two. */
function packed(headers: Readonly<Record<string, string>>): string {
  return JSON.stringify(headers).replace(/[\ufffe\uffff]/g, (it) => `\\u${it.charCodeAt(0).toString(16)}`);
}

function text(value: string): MessageAttributeValue {
  return { DataType: "String", StringValue: value };
}

function legalId(id: string): string {
  return LEGAL_ID.test(id) ? id : createHash("sha256").update(id).digest("hex");
}
