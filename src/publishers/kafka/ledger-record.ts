import { createHash } from "node:crypto";
import { RelayError } from "../../core/errors.ts";
import type { CommittedBatch, LaneAddress } from "../../ports/transactions.ts";

const VERSION = 1;
const HEAD_BYTES = 1 + 8 + 4;
const UUID_BYTES = 16;
const UUID_TEXT = 36;
/** Marks a UUID in place of a length. */
const IS_UUID = 0;
const DASH = 0x2d;
const NO_NIBBLE = 0xff;
/** The value of each hex digit by its character code. Upper case is excluded, so that every id is decoded unchanged. */
const NIBBLES = new Uint8Array(256).fill(NO_NIBBLE);
for (const [worth, digit] of [..."0123456789abcdef"].entries()) NIBBLES[digit.charCodeAt(0)] = worth;

/** Short, because every key contains it; 48 bits distinguish even thousands of pipelines of a database. */
function pipelineHash(pipeline: string): string {
  return createHash("sha256").update(pipeline).digest("hex").slice(0, 12);
}

/**
 * The lane's transactional id, the same for every owner. It starts with the service name, so that one prefixed ACL
 * covers all lanes.
 */
export function transactionalId(service: string, { database, pipeline, lane }: LaneAddress): string {
  return `${service}.${database}.${pipelineHash(pipeline)}.${lane}`;
}

/** The prefix of the keys of a lane's records; no lane's prefix is a prefix of another's. */
export function lanePrefix({ database, pipeline, lane }: LaneAddress): string {
  return `${database}/${pipelineHash(pipeline)}/${lane}/`;
}

/** The key of the record that is written before a lane's notes are read; no lane's prefix matches it. */
export function fenceKey(prefix: string): string {
  return `fence/${prefix}`;
}

/** The key of a batch's slot in the ring: compaction keeps the last record of each key. */
export function ringKey(prefix: string, batch: bigint, ringSize: number): string {
  return `${prefix}${batch % BigInt(ringSize)}`;
}

/** Encodes version, batch number, count and ids: a UUID as 16 bytes, any other string with its length. */
export function encodeNote({ batch, ids }: CommittedBatch): Buffer {
  const value = packUuids(ids) ?? packTexts(ids);
  value.writeUInt8(VERSION, 0);
  value.writeBigInt64BE(batch, 1);
  value.writeUInt32BE(ids.length, 9);
  return value;
}

/** Decodes only the batch number, because most records that are read are not needed. */
export function batchOfNote(value: Buffer, where: string): bigint {
  const version = value.length > 0 ? value.readUInt8(0) : undefined;
  if (version !== VERSION)
    throw unreadable(where, `its format version is ${version ?? "missing"}, expected ${VERSION}`);
  if (value.length < HEAD_BYTES) throw unreadable(where, "it is truncated");
  return value.readBigInt64BE(1);
}

/** Decodes a note. Throws LEDGER_UNFIT. */
export function decodeNote(value: Buffer, where: string): CommittedBatch {
  const batch = batchOfNote(value, where);
  const ids: string[] = [];
  let at = HEAD_BYTES;
  for (let left = value.readUInt32BE(9); left > 0; left--) {
    const [length, start] = readLength(value, at, where);
    const isUuid = length === IS_UUID;
    const end = start + (isUuid ? UUID_BYTES : length - 1);
    if (end > value.length) throw unreadable(where, "it is truncated");
    ids.push(isUuid ? uuidText(value.toString("hex", start, end)) : value.toString("utf8", start, end));
    at = end;
  }
  return { batch, ids };
}

/**
 * Packs all ids at once: encoding each id by itself would take as long as sending the events. Null: not all are UUIDs.
 */
function packUuids(ids: readonly string[]): Buffer | null {
  if (ids.some((id) => id.length !== UUID_TEXT)) return null;
  const text = Buffer.from(ids.join(""), "utf8");
  // A UUID has no multi-byte characters.
  if (text.length !== ids.length * UUID_TEXT) return null;
  const value = Buffer.allocUnsafe(HEAD_BYTES + ids.length * (1 + UUID_BYTES));
  for (let index = 0; index < ids.length; index++) {
    const at = HEAD_BYTES + index * (1 + UUID_BYTES);
    value[at] = IS_UUID;
    if (!packUuid(value, at + 1, text, index * UUID_TEXT)) return null;
  }
  return value;
}

function packTexts(ids: readonly string[]): Buffer {
  // A length takes at most four bytes, because no id is larger than a record.
  const value = Buffer.allocUnsafe(ids.reduce((bytes, id) => bytes + 4 + Buffer.byteLength(id), HEAD_BYTES));
  let end = HEAD_BYTES;
  for (const id of ids) {
    const text = Buffer.from(id, "utf8");
    if (text.length === UUID_TEXT && packUuid(value, end + 1, text, 0)) {
      value[end] = IS_UUID;
      end += 1 + UUID_BYTES;
    } else {
      end = writeLength(value, end, text.length + 1);
      end += text.copy(value, end);
    }
  }
  return value.subarray(0, end);
}

/** False when the text is not a UUID in canonical form. */
function packUuid(value: Buffer, at: number, text: Buffer, start: number): boolean {
  let end = at;
  for (let digit = start; digit < start + UUID_TEXT; digit += 2) {
    const place = digit - start;
    if (place === 8 || place === 13 || place === 18 || place === 23) {
      if (text[digit] !== DASH) return false;
      digit++;
    }
    const high = NIBBLES[text[digit]!]!;
    const low = NIBBLES[text[digit + 1]!]!;
    if ((high | low) > 0xf) return false;
    value[end++] = (high << 4) | low;
  }
  return true;
}

function uuidText(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Seven bits per byte, lowest first; the highest bit means that more bytes follow. */
function writeLength(value: Buffer, at: number, length: number): number {
  let rest = length;
  let end = at;
  for (; rest > 0x7f; rest >>>= 7) value[end++] = (rest & 0x7f) | 0x80;
  value[end++] = rest;
  return end;
}

function readLength(value: Buffer, at: number, where: string): [length: number, end: number] {
  let length = 0;
  for (let index = 0; index < 4; index++) {
    const byte = value[at + index];
    if (byte === undefined) throw unreadable(where, "it is truncated");
    length |= (byte & 0x7f) << (7 * index);
    if (byte <= 0x7f) return [length, at + index + 1];
  }
  throw unreadable(where, "it contains an invalid length");
}

function unreadable(where: string, why: string): RelayError {
  const cure = "A newer relay or another program wrote it: run that version of the relay, or stop the other writer";
  return new RelayError("LEDGER_UNFIT", `A ledger record in ${where} cannot be read: ${why}. ${cure}.`);
}
