import type { MsgHdrs } from "@nats-io/transport-node";
import { dedupeId } from "../../core/dedupe-id.ts";
import type { Message } from "../../core/event.ts";
import type { Nats } from "./nats-client.ts";
import { type NatsSettings, subjectFault } from "./nats-config.ts";

/** NATS has no message key, so a header carries it. */
const KEY_HEADER = "partition-key";

/** Headers with this prefix are commands to the server: one of them purges the stream. */
const SERVER_HEADER = /^nats-/i;
const HEADER_NAME = /^[!-9;-~]+$/;
const LINE_BREAK = /[\r\n]/;

/** Null when NATS can carry the message, else what is wrong with it. */
export function messageFault({ event, headers, key, topic }: Message): string | null {
  const fault = subjectFault(topic) ?? valueFault("the event's id", event.id);
  if (fault !== null) return fault;
  if (key !== null) {
    const keyFault = valueFault("the key", key);
    if (keyFault !== null) return keyFault;
  }
  for (const name in headers) {
    if (!HEADER_NAME.test(name))
      return `the header name ${JSON.stringify(name)} contains characters that NATS cannot carry`;
    if (SERVER_HEADER.test(name)) return `the header ${name} would be a command to the NATS server`;
    const headerFault = valueFault(`the header ${name}`, headers[name]!);
    if (headerFault !== null) return headerFault;
  }
  return null;
}

function valueFault(what: string, value: string): string | null {
  if (LINE_BREAK.test(value)) return `${what} contains a line break, which NATS cannot carry`;
  return value.isWellFormed() ? null : `${what} contains half a character (a lone surrogate)`;
}

/** The headers of a message that `messageFault` has accepted. */
export function natsHeaders(nats: Nats, message: Message, { stream }: NatsSettings): MsgHdrs {
  const { headers, key } = message;
  // Without a prototype, because a header may be named `__proto__`.
  const record: Record<string, string[]> = Object.create(null);
  for (const name in headers) record[name] = [headers[name]!];
  record["Nats-Msg-Id"] = [dedupeId(message)];
  if (stream !== null) record["Nats-Expected-Stream"] = [stream];
  if (key !== null) record[KEY_HEADER] = [key];
  return nats.MsgHdrsImpl.fromRecord(record);
}
