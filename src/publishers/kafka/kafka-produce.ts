import type { Reader } from "@platformatic/kafka";
import type { Kafka, KafkaConnection } from "./kafka-client.ts";
import type { KafkaCompression } from "./kafka-config.ts";
import { type Item, recordsBytes, writeRecords, writeUnsignedVarint } from "./kafka-records.ts";

/** Records for one partition. A partition is in a request at most once. */
export interface ProduceBatch {
  readonly topic: string;
  readonly partition: number;
  readonly items: readonly Item[];
  /** The sequence number of its first record. The broker drops a batch whose number it already has. */
  readonly sequence: number;
}

/** A Produce request to one broker. */
export interface ProduceRequest {
  /** At least PRODUCE_VERSION_MIN. */
  readonly version: number;
  readonly transactionalId: string | null;
  readonly producerId: bigint;
  readonly producerEpoch: number;
  /** How long the broker waits for its replicas. */
  readonly timeoutMs: number;
  readonly compression: KafkaCompression;
  readonly batches: readonly ProduceBatch[];
}

/** The broker's answer for one batch. */
export interface ProduceAnswer {
  readonly topic: string;
  readonly partition: number;
  readonly code: number;
  readonly message: string | null;
  /** The records at fault, by their index in the batch, if the broker names them. */
  readonly faults: readonly { readonly at: number; readonly message: string | null }[];
}

const PRODUCE_API = 0;
/** The first version with variable-length fields; Kafka 2.4 and later support it. */
export const PRODUCE_VERSION_MIN = 9;
const ALL_REPLICAS = -1;
const TRANSACTIONAL = 16;
const MAGIC = 2;
const BATCH_HEAD_BYTES = 61;
const BATCH_LENGTH_AT = 8;
const CRC_AT = 17;
const ATTRIBUTES_AT = 21;

/**
 * Sends the batches to one broker. Error codes are answers, not exceptions: a rejection means that there was no answer
 * and it is unknown what was written.
 */
export function produce(
  kafka: Kafka,
  connection: KafkaConnection,
  request: ProduceRequest,
  encoded: Buffer | null = null,
): Promise<readonly ProduceAnswer[]> {
  return new Promise((resolve, reject) => {
    connection.send<ProduceAnswer[]>(
      PRODUCE_API,
      request.version,
      () => kafka.Writer.create().append(encoded ?? encode(kafka, request, spaceOf)),
      (_correlation, _api, _version, reader) => answersOf(reader),
      true,
      true,
      (error, answers) => (error ? reject(error) : resolve(answers ?? [])),
    );
  });
}

/** Encodes a request into its own memory, to use the time before it can be sent. */
export function encodeAhead(kafka: Kafka, request: ProduceRequest): Buffer {
  return encode(kafka, request, Buffer.allocUnsafeSlow);
}

function encode(kafka: Kafka, request: ProduceRequest, allocate: (bytes: number) => Buffer): Buffer {
  const topics = Map.groupBy(request.batches, ({ topic }) => topic);
  const packed = new Map(request.batches.map((batch) => [batch, pack(kafka, request, batch)]));
  const buffer = allocate(requestBytes(request, topics, packed));
  let position = writeCompactText(buffer, 0, request.transactionalId);
  position = buffer.writeInt16BE(ALL_REPLICAS, position);
  position = buffer.writeInt32BE(request.timeoutMs, position);
  position = writeUnsignedVarint(buffer, position, topics.size + 1);
  for (const [topic, batches] of topics) {
    position = writeCompactText(buffer, position, topic);
    position = writeUnsignedVarint(buffer, position, batches.length + 1);
    for (const batch of batches) {
      const records = packed.get(batch)!;
      position = buffer.writeInt32BE(batch.partition, position);
      position = writeUnsignedVarint(buffer, position, BATCH_HEAD_BYTES + records.bytes + 1);
      position = writeBatch(kafka, buffer, position, request, batch, records);
      buffer[position++] = NO_TAGS;
    }
    buffer[position++] = NO_TAGS;
  }
  buffer[position++] = NO_TAGS;
  return buffer.subarray(0, position);
}

const NO_TAGS = 0;

/** The client copies a request at once, so all requests share one buffer; rare large ones get their own. */
const SHARED_BYTES_MAX = 2 * 1024 * 1024;
let shared = Buffer.allocUnsafeSlow(64 * 1024);

function spaceOf(bytes: number): Buffer {
  if (bytes > SHARED_BYTES_MAX) return Buffer.allocUnsafe(bytes);
  if (bytes > shared.length) shared = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(bytes)));
  return shared;
}

/** The size of a batch's records, and the records themselves if they are compressed. */
interface Packed {
  readonly bytes: number;
  readonly compressed: Buffer | null;
}

function pack(kafka: Kafka, { compression }: ProduceRequest, { items }: ProduceBatch): Packed {
  const bytes = recordsBytes(items);
  if (compression === "none") return { bytes, compressed: null };
  const plain = Buffer.allocUnsafe(bytes);
  writeRecords(plain, 0, items);
  const compressed = kafka.compressionsAlgorithms[compression].compressSync(plain) as Buffer;
  return { bytes: compressed.length, compressed };
}

function requestBytes(
  { transactionalId }: ProduceRequest,
  topics: ReadonlyMap<string, readonly ProduceBatch[]>,
  packed: ReadonlyMap<ProduceBatch, Packed>,
): number {
  // Every string and list takes at most five bytes more than its content.
  let bytes = 64 + Buffer.byteLength(transactionalId ?? "");
  for (const topic of topics.keys()) bytes += 16 + Buffer.byteLength(topic);
  for (const records of packed.values()) bytes += 16 + BATCH_HEAD_BYTES + records.bytes;
  return bytes;
}

function writeBatch(
  kafka: Kafka,
  buffer: Buffer,
  start: number,
  request: ProduceRequest,
  { items, sequence }: ProduceBatch,
  { bytes, compressed }: Packed,
): number {
  const end = start + BATCH_HEAD_BYTES + bytes;
  const now = BigInt(Date.now());
  const codec = kafka.compressionsAlgorithms[request.compression].bitmask;
  let position = buffer.writeBigInt64BE(0n, start);
  position = buffer.writeInt32BE(end - position - 4, start + BATCH_LENGTH_AT);
  position = buffer.writeInt32BE(-1, position);
  buffer.writeInt8(MAGIC, position);
  position = buffer.writeInt16BE(codec | (request.transactionalId === null ? 0 : TRANSACTIONAL), start + ATTRIBUTES_AT);
  position = buffer.writeInt32BE(items.length - 1, position);
  position = buffer.writeBigInt64BE(now, position);
  position = buffer.writeBigInt64BE(now, position);
  position = buffer.writeBigInt64BE(request.producerId, position);
  position = buffer.writeInt16BE(request.producerEpoch, position);
  position = buffer.writeInt32BE(sequence, position);
  position = buffer.writeInt32BE(items.length, position);
  if (compressed === null) writeRecords(buffer, position, items);
  else compressed.copy(buffer, position);
  // Wrapped, because the client copies a plain buffer before it counts.
  const counted = kafka.Writer.create().append(buffer.subarray(start + ATTRIBUTES_AT, end));
  buffer.writeUInt32BE(kafka.crc32c(counted.dynamicBuffer) >>> 0, start + CRC_AT);
  return end;
}

function writeCompactText(buffer: Buffer, start: number, text: string | null): number {
  if (text === null) return writeUnsignedVarint(buffer, start, 0);
  const bytes = Buffer.byteLength(text);
  const position = writeUnsignedVarint(buffer, start, bytes + 1);
  return position + buffer.write(text, position, bytes, "utf8");
}

function answersOf(reader: Reader): ProduceAnswer[] {
  const answers: ProduceAnswer[] = [];
  reader.readArray(() => {
    const topic = reader.readString();
    reader.readArray(() => void answers.push(answerOf(reader, topic)));
  });
  return answers;
}

function answerOf(reader: Reader, topic: string): ProduceAnswer {
  const partition = reader.readInt32();
  const code = reader.readInt16();
  // The offset of the first record, the time and the log's first offset, of eight bytes each.
  reader.skip(24);
  const faults = reader.readArray(() => ({ at: reader.readInt32(), message: reader.readNullableString() }));
  return { topic, partition, code, message: reader.readNullableString(), faults };
}
