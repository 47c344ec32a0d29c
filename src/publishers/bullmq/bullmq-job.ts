import { isUtf8 } from "node:buffer";
import type { BulkJobOptions } from "bullmq";
import { dedupeId } from "../../core/dedupe-id.ts";
import type { Headers, Message } from "../../core/event.ts";
import type { BullmqSettings } from "./bullmq-config.ts";
import { queueFault } from "./bullmq-config.ts";

/** What a worker finds in `job.data`. `Buffer.from(payload, encoding)` are the payload's bytes. */
export interface BullmqEvent {
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly headers: Headers;
  readonly payload: string;
  readonly encoding: "utf8" | "base64";
}

interface BulkJob {
  readonly name: string;
  readonly data: BullmqEvent;
  readonly opts: BulkJobOptions;
}

export function jobOf(message: Message, { jobName, jobOptions }: BullmqSettings): BulkJob {
  const { event, headers, key, payload } = message;
  const encoding = isUtf8(payload) ? "utf8" : "base64";
  const data = { id: event.id, type: event.type, key, headers, payload: payload.toString(encoding), encoding } as const;
  return { name: jobName ?? event.type, data, opts: { ...jobOptions, jobId: jobIdOf(message) } };
}

/** BullMQ forbids colons and whole numbers. Two messages never share an id: the percent sign is written anew too. */
export function jobIdOf(message: Message): string {
  return dedupeId(message).replaceAll(/[%:]/g, (sign) => (sign === ":" ? "%3A" : "%25"));
}

/** Null when the message can become a job, else what is wrong with it. */
export function faultOf({ event, topic }: Message, { queue }: BullmqSettings): string | null {
  const fault = queue === null ? queueFault(topic) : null;
  if (fault !== null) return fault;
  if (!event.id.isWellFormed()) return "the event's id holds half a character";
  return event.type.isWellFormed() ? null : "the event's type holds half a character";
}
