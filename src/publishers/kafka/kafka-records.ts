import type { EventHeaders } from "../../core/event.ts";
import { LEDGER_PREFIX, topicFault } from "./kafka-config.ts";

/** The part of a message that becomes a record. */
export interface Sendable {
  readonly topic: string;
  readonly key: string | null;
  readonly headers: EventHeaders;
  readonly payload: Buffer;
}

/** A message with its index in the batch. */
export interface Item<M extends Sendable = Sendable> {
  readonly index: number;
  readonly message: M;
  /**
   * The size of key, value and headers with their lengths, without the fields that depend on the position in a record
   * batch.
   */
  readonly contentBytes: number;
}

/** Strings up to this length, such as a UUID, are encoded in a loop: a call into the runtime costs more. */
const SHORT_TEXT = 40;

/** Attributes and the timestamp delta, which is always 0. */
const RECORD_HEAD_BYTES = 2;
/** The longest offset and the longest length of a record. */
const RECORD_FRAME_BYTES_MAX = RECORD_HEAD_BYTES + 5 + 5;

/** Null when the message can become a record, else why it never can. */
export function faultOf(message: Sendable): string | null {
  const fault = topicFault(message.topic);
  if (fault !== null) return fault;
  if (message.topic.startsWith(LEDGER_PREFIX))
    return `topic "${message.topic}" is a relay's ledger: route the event to another topic`;
  if (message.key !== null && !isText(message.key)) return "the key is not valid Unicode text";
  const bad = Object.entries(message.headers).find(([name, value]) => !isText(name) || !isText(value));
  if (bad === undefined) return null;
  return `the header ${JSON.stringify(bad[0])} is not valid Unicode text`;
}

/** A lone surrogate has no UTF-8 encoding and would arrive as another character. */
function isText(text: unknown): boolean {
  return typeof text === "string" && text.isWellFormed();
}

/** The size of the message's content in a record; -1 when `faultOf` rejects one of its strings. */
export function measure({ key, headers, payload }: Sendable): number {
  let bytes = bytesWithLength(payload.length);
  if (key === null) bytes += 1;
  else {
    const keyBytes = textBytes(key);
    if (keyBytes < 0) return -1;
    bytes += bytesWithLength(keyBytes);
  }
  let count = 0;
  for (const name in headers) {
    const nameBytes = textBytes(name);
    const valueBytes = textBytes(headers[name]);
    if (nameBytes < 0 || valueBytes < 0) return -1;
    bytes += bytesWithLength(nameBytes) + bytesWithLength(valueBytes);
    count += 1;
  }
  return bytes + varintBytes(count);
}

function textBytes(text: unknown): number {
  if (typeof text !== "string") return -1;
  if (text.length <= SHORT_TEXT && isAscii(text)) return text.length;
  const bytes = Buffer.byteLength(text, "utf8");
  return bytes === text.length || text.isWellFormed() ? bytes : -1;
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) return false;
  return true;
}

function bytesWithLength(length: number): number {
  return varintBytes(length) + length;
}

/** An upper bound of the item's size in a record batch. */
export function recordBytesMax({ contentBytes }: Item): number {
  return contentBytes + RECORD_FRAME_BYTES_MAX;
}

/** The exact size of the items as the records of one batch. */
export function recordsBytes(items: readonly Item[]): number {
  let bytes = 0;
  for (let at = 0; at < items.length; at++) bytes += bytesWithLength(bodyBytes(items[at]!, at));
  return bytes;
}

function bodyBytes({ contentBytes }: Item, offset: number): number {
  return RECORD_HEAD_BYTES + varintBytes(offset) + contentBytes;
}

/** Writes the items as the records of one batch and returns the end position. */
export function writeRecords(buffer: Buffer, start: number, items: readonly Item[]): number {
  let position = start;
  for (let at = 0; at < items.length; at++) {
    const item = items[at]!;
    position = writeVarint(buffer, position, bodyBytes(item, at));
    buffer[position] = 0;
    buffer[position + 1] = 0;
    position = writeVarint(buffer, position + RECORD_HEAD_BYTES, at);
    position = writeContent(buffer, position, item.message);
  }
  return position;
}

function writeContent(buffer: Buffer, start: number, { key, headers, payload }: Sendable): number {
  let position = start;
  if (key === null) buffer[position++] = NO_KEY;
  else position = writeText(buffer, position, key);
  position = writeVarint(buffer, position, payload.length);
  position += payload.copy(buffer, position);
  let count = 0;
  for (const _ in headers) count += 1;
  position = writeVarint(buffer, position, count);
  for (const name in headers) {
    position = writeText(buffer, position, name);
    position = writeText(buffer, position, headers[name]!);
  }
  return position;
}

/** The length -1. */
const NO_KEY = 1;

function writeText(buffer: Buffer, start: number, text: string): number {
  const { length } = text;
  if (length > SHORT_TEXT) return writeLongText(buffer, start, text);
  const position = writeVarint(buffer, start, length);
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code > 127) return writeLongText(buffer, start, text);
    buffer[position + at] = code;
  }
  return position + length;
}

function writeLongText(buffer: Buffer, start: number, text: string): number {
  const bytes = Buffer.byteLength(text, "utf8");
  const position = writeVarint(buffer, start, bytes);
  return position + buffer.write(text, position, bytes, bytes === text.length ? "latin1" : "utf8");
}

/** Lengths and counts are zigzag-encoded signed numbers, so a positive value is doubled. */
function writeVarint(buffer: Buffer, start: number, value: number): number {
  return writeUnsignedVarint(buffer, start, value * 2);
}

function varintBytes(value: number): number {
  return unsignedVarintBytes(value * 2);
}

/** Writes an unsigned varint and returns the end position. */
export function writeUnsignedVarint(buffer: Buffer, start: number, value: number): number {
  let position = start;
  let left = value;
  while (left > 127) {
    buffer[position++] = (left & 127) | 128;
    left >>>= 7;
  }
  buffer[position++] = left;
  return position;
}

function unsignedVarintBytes(value: number): number {
  if (value < 128) return 1;
  if (value < 16_384) return 2;
  if (value < 2_097_152) return 3;
  return value < 268_435_456 ? 4 : 5;
}
