import type { Options } from "amqplib";
import type { Message } from "../../core/event.ts";
import { NAME_BYTES_MAX } from "./rabbitmq-config.ts";

/** The header that carries the key, because AMQP has no message key. */
const KEY_HEADER = "partition-key";

/** The server reads additional routing keys from these, and closes the channel when they contain strings. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set(["CC", "BCC"]);

/** The client encodes all headers of a message into a buffer of this size. */
const HEADER_BYTES_MAX = 65_536;
/** The rest of the header frame: frame header and end, sizes, flags and numbers. */
const FRAME_REST_BYTES = 64;
/** A string of this many characters always fits. */
const SHORT_LENGTH = NAME_BYTES_MAX / 3;

/** The AMQP properties of a message. */
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
    // A longer one is still sent as a header.
    ...(event.correlationId !== null && isShort(event.correlationId) ? { correlationId: event.correlationId } : {}),
    ...(seconds >= 0 ? { timestamp: seconds } : {}),
  };
}

/** Null when AMQP can carry the message, else what is wrong with it. */
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
  return bytes <= bytesMax ? null : `the headers have about ${bytes} bytes, but at most ${bytesMax} fit into a message`;
}

function headerFault(name: string, value: string): string | null {
  if (RESERVED_HEADERS.has(name)) return `the header ${name} contains additional routing keys for RabbitMQ: rename it`;
  const shown = JSON.stringify(name);
  return (
    textFault(`name of the header ${shown}`, name) ??
    lengthFault(`name of the header ${shown}`, name) ??
    textFault(`header ${shown}`, value)
  );
}

function textFault(what: string, text: string): string | null {
  return text.isWellFormed() ? null : `the ${what} contains half a character (a lone surrogate)`;
}

function lengthFault(what: string, text: string): string | null {
  return isShort(text) ? null : `the ${what} has ${Buffer.byteLength(text)} bytes, ${NAME_BYTES_MAX} are allowed`;
}

function isShort(text: string): boolean {
  return text.length <= SHORT_LENGTH || Buffer.byteLength(text) <= NAME_BYTES_MAX;
}

/** One byte for the name's length, one for the value's type and four for its length. */
function headerBytes(name: string, value: string): number {
  return 6 + Buffer.byteLength(name) + Buffer.byteLength(value);
}

/** AMQP has a property for the content type. A value that is too long stays a header. */
function splitContentType(headers: Message["headers"]): {
  readonly type: string | null;
  readonly rest: Message["headers"];
} {
  const { "content-type": type = null, ...rest } = headers;
  return type !== null && isShort(type) ? { type, rest } : { type: null, rest: headers };
}
