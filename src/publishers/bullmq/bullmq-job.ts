import { isUtf8 } from "node:buffer";
import type { BulkJobOptions } from "bullmq";
import { dedupeId } from "../../core/dedupe-id.ts";
import type { EventHeaders, Message } from "../../core/event.ts";
import type { BullmqSettings } from "./bullmq-config.ts";
import { queueFault } from "./bullmq-config.ts";

/** The `job.data` of an event. `Buffer.from(payload, encoding)` restores the payload's bytes. */
export interface BullmqEvent {
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly headers: EventHeaders;
  readonly payload: string;
  readonly encoding: "utf8" | "base64";
}

interface BulkJob {
  readonly name: string;
  readonly data: BullmqEvent;
  readonly opts: BulkJobOptions;
}

/** The job of a message. */
export function jobOf(message: Message, { jobName, jobOptions }: BullmqSettings): BulkJob {
  const { event, headers, key, payload } = message;
  const encoding = isUtf8(payload) ? "utf8" : "base64";
  const data = { id: event.id, type: event.type, key, headers, payload: payload.toString(encoding), encoding } as const;
  return { name: jobName ?? event.type, data, opts: { ...jobOptions, jobId: jobIdOf(message) } };
}

/**
 * The job id of a message. BullMQ forbids colons and integers as ids. The percent sign is escaped, too, so that two
 * messages never share an id.
 */
export function jobIdOf(message: Message): string {
  return dedupeId(message).replaceAll(/[%:]/g, (sign) => (sign === ":" ? "%3A" : "%25"));
}

/** Null when the message can become a job, else what is wrong with it. */
export function faultOf({ event, topic }: Message, { queue }: BullmqSettings): string | null {
  const fault = queue === null ? queueFault(topic) : null;
  if (fault !== null) return fault;
  if (!event.id.isWellFormed()) return "the event's id contains half a character (a lone surrogate)";
  return event.type.isWellFormed() ? null : "the event's type contains half a character (a lone surrogate)";
}
