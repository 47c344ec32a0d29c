import type { Options } from "amqplib";
import type { Message } from "../../core/event.ts";
import { NAME_BYTES_MAX } from "./rabbitmq-config.ts";

/** The header that carries the key: the protocol has no place for one. */
const KEY_HEADER = "partition-key";

/** The server reads more routing keys from these and closes the channel when they hold text. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set(["CC", "BCC"]);

/** The client encodes all headers of a message into a buffer of this size. */
const HEADER_BYTES_MAX = 65_536;
/** What else stands in the frame of the headers: its own head and end, sizes, flags and numbers. */
const FRAME_REST_BYTES = 64;
/** A text of so many characters fits in any case. */
const SHORT_LENGTH = NAME_BYTES_MAX / 3;

export function propertiesOf({ event, key, headers }: Message): Options.Publish {
  const { type: contentType, rest } = splitContentType(headers);
  const seconds = event.createdAt === null ? Number.NaN : Math.floor(Date.parse(event.createdAt) / 1_000);
  return {
    messageId: event.id,
    type: event.type,
    persistent: true,
    mandatory: true,
    headers: key === null ? rest : { ...rest, [KEY_HEADER]: key },
    ...(contentType === null ? {} : { contentType }),
    // One that does not fit still travels as a header.
    ...(event.correlationId !== null && isShort(event.correlationId) ? { correlationId: event.correlationId } : {}),
    ...(seconds >= 0 ? { timestamp: seconds } : {}),
  };
}

/** Why the protocol cannot carry this message; null when it can. */
export function faultOf(message: Message, frameBytesMax: number): string | null {
  const { event, topic, key, headers } = message;
  const names = { "routing key": topic, "event's id": event.id, "event's type": event.type };
  let bytes = FRAME_REST_BYTES;
  for (const [what, text] of Object.entries(names)) {
    const fault = textFault(what, text) ?? lengthFault(what, text);
    if (fault !== null) return fault;
    bytes += Buffer.byteLength(text);
  }
  const keyFault = key === null ? null : textFault("key", key);
  if (keyFault !== null) return keyFault;
  if (key !== null) bytes += headerBytes(KEY_HEADER, key);
  for (const name in headers) {
    const value = headers[name]!;
    const fault = headerFault(name, value);
    if (fault !== null) return fault;
    bytes += headerBytes(name, value);
  }
  const bytesMax = Math.min(HEADER_BYTES_MAX, frameBytesMax);
  return bytes <= bytesMax ? null : `the headers have about ${bytes} bytes, ${bytesMax} fit into a message here`;
}

function headerFault(name: string, value: string): string | null {
  if (RESERVED_HEADERS.has(name)) return `the header ${name} means more routing keys to RabbitMQ: rename it`;
  const shown = JSON.stringify(name);
  return (
    textFault(`name of the header ${shown}`, name) ??
    lengthFault(`name of the header ${shown}`, name) ??
    textFault(`header ${shown}`, value)
  );
}

function textFault(what: string, text: string): string | null {
  return text.isWellFormed() ? null : `the ${what} holds half a character (a lone surrogate)`;
}

function lengthFault(what: string, text: string): string | null {
  return isShort(text) ? null : `the ${what} has ${Buffer.byteLength(text)} bytes, ${NAME_BYTES_MAX} are allowed`;
}

function isShort(text: string): boolean {
  return text.length <= SHORT_LENGTH || Buffer.byteLength(text) <= NAME_BYTES_MAX;
}

/** A byte for the name's length, one for the value's kind and four for its length. */
function headerBytes(name: string, value: string): number {
  return 6 + Buffer.byteLength(name) + Buffer.byteLength(value);
}

/** The protocol has a place of its own for the content type. One that does not fit there stays a header. */
function splitContentType(headers: Message["headers"]): {
  readonly type: string | null;
  readonly rest: Message["headers"];
} {
  const { "content-type": type = null, ...rest } = headers;
  return type !== null && isShort(type) ? { type, rest } : { type: null, rest: headers };
}
