/** The requests of a transaction, by their number in Kafka's protocol. */
const TRANSACTION_REQUESTS = new Map([
  [0, { name: "Produce", flexibleFrom: 9 }],
  [22, { name: "InitProducerId", flexibleFrom: 2 }],
  [24, { name: "AddPartitionsToTxn", flexibleFrom: 3 }],
  [26, { name: "EndTxn", flexibleFrom: 3 }],
] as const);

export type TransactionRequestName = "Produce" | "InitProducerId" | "AddPartitionsToTxn" | "EndTxn";

/** A request of a transaction; `name` is null for any other request. */
export type KafkaRequest = {
  /** With its length in front, as it goes over the wire. */
  readonly frame: Buffer;
  readonly correlationId: number;
  readonly clientId: string | null;
  readonly isFlexible: boolean;
} & (
  | { readonly name: TransactionRequestName; readonly transactionalId: string }
  | { readonly name: null; readonly transactionalId: null }
);

const LENGTH_BYTES = 4;
/** From this version on the request carries several transactions, as brokers ask each other; clients send one. */
const ADD_PARTITIONS_BATCHED_FROM = 4;

type Take = (bytes: Buffer) => void;

/** Cuts a stream of bytes into frames, each with its length in front. */
export function frameSplitter(take: Take): Take {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let start = 0;
    while (rest.length - start >= LENGTH_BYTES) {
      const end = start + LENGTH_BYTES + rest.readInt32BE(start);
      if (end > rest.length) break;
      take(rest.subarray(start, end));
      start = end;
    }
    rest = rest.subarray(start);
  };
}

export function parseRequest(frame: Buffer): KafkaRequest {
  const read = new Reader(frame, LENGTH_BYTES);
  const apiKey = read.int16();
  const version = read.int16();
  const correlationId = read.int32();
  const clientId = read.string();
  const api = TRANSACTION_REQUESTS.get(apiKey as 0);
  const isFlexible = api !== undefined && version >= api.flexibleFrom;
  const other = { frame, correlationId, clientId, isFlexible, name: null, transactionalId: null } as const;
  if (api === undefined) return other;
  if (isFlexible) read.tags();
  if (api.name === "AddPartitionsToTxn" && version >= ADD_PARTITIONS_BATCHED_FROM) read.varint();
  const transactionalId = isFlexible ? read.compactString() : read.string();
  return transactionalId === null ? other : { ...other, name: api.name, transactionalId };
}

export function correlationIdOf(answer: Buffer): number {
  return answer.readInt32BE(LENGTH_BYTES);
}

/** What the broker said to the start or the end of a transaction, 0 for yes; undefined for other requests. */
export function errorCodeOf({ name, isFlexible }: KafkaRequest, answer: Buffer): number | undefined {
  if (name !== "EndTxn" && name !== "InitProducerId") return undefined;
  const read = new Reader(answer, LENGTH_BYTES);
  read.int32();
  if (isFlexible) read.tags();
  read.int32(); // for how long the client is throttled
  return read.int16();
}

/** What a coordinator says to the end of a transaction, without having done anything. */
export function answerToEnd({ correlationId, isFlexible }: KafkaRequest, code: number): Buffer {
  const body = Buffer.alloc(isFlexible ? 12 : 10);
  body.writeInt32BE(correlationId, 0);
  // Behind the tagged fields of the header comes the time for which the client is throttled.
  body.writeInt16BE(code, isFlexible ? 9 : 8);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeInt32BE(body.length);
  return Buffer.concat([length, body]);
}

class Reader {
  readonly #buffer: Buffer;
  #at: number;

  constructor(buffer: Buffer, start: number) {
    this.#buffer = buffer;
    this.#at = start;
  }

  int16(): number {
    this.#at += 2;
    return this.#buffer.readInt16BE(this.#at - 2);
  }

  int32(): number {
    this.#at += 4;
    return this.#buffer.readInt32BE(this.#at - 4);
  }

  varint(): number {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = this.#buffer.readUInt8(this.#at);
      this.#at += 1;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }

  string(): string | null {
    return this.#text(this.int16());
  }

  compactString(): string | null {
    return this.#text(this.varint() - 1);
  }

  /** Tagged fields of a header: nobody sends any, but they would be skipped. */
  tags(): void {
    for (let count = this.varint(); count > 0; count -= 1) {
      this.varint();
      const length = this.varint();
      this.#at += length;
    }
  }

  #text(length: number): string | null {
    if (length < 0) return null;
    this.#at += length;
    return this.#buffer.toString("utf8", this.#at - length, this.#at);
  }
}
