import { z } from "zod";
import { EVENT_STATES } from "../../operations/event-filter.ts";
import { auditEntrySchema } from "./service.ts";
import { brokenSchema, headersSchema, time } from "./shared-shapes.ts";

export const sourcesSchema = z.object({
  sources: z.array(z.object({ source: z.string(), pipelines: z.array(z.string()) })),
  broken: brokenSchema,
});

const eventShape = {
  source: z.string(),
  id: z.string(),
  type: z.string(),
  key: z.string().nullable(),
  correlationId: z.string().nullable(),
  createdAt: time,
  state: z.enum(EVENT_STATES),
  attempts: z.int().nullable().describe("Failures so far, of one that has failed"),
  reason: z.string().nullable(),
  nextAttemptAt: time,
  parkedBehind: z.string().nullable().describe("The event that keeps this one waiting"),
};

export const eventPageSchema = z.object({
  events: z.array(z.object(eventShape).meta({ id: "Event" })),
  cursor: z.string().nullable().describe("Of the next page; null at the end"),
  broken: brokenSchema,
  covered: z
    .array(z.object({ source: z.string(), upTo: time, isComplete: z.boolean() }))
    .describe("How far back a search came that had to look at row after row and ended in time"),
});

export const payloadSchema = z
  .object({
    encoding: z.enum(["utf-8", "base64"]),
    text: z.string(),
    bytes: z.int(),
    isTruncated: z.boolean(),
  })
  .meta({ id: "Payload" });

export const failedAttemptsSchema = z.array(
  z.object({ at: z.string(), attempt: z.int(), reason: z.string() }).meta({ id: "FailedAttempt" }),
);

/** One that was recorded: every failed one, and of the others as many as the settings allow. */
export const attemptSchema = z
  .object({
    at: z.iso.datetime(),
    pipeline: z.string(),
    instance: z.string().nullable(),
    outcome: z.enum(["delivered", "failed", "dead"]),
    attempt: z.int(),
    reason: z.string().nullable(),
    errorType: z.string().nullable(),
    target: z.string().nullable().describe("Topic, subject, stream, queue or address"),
    writtenAt: time,
    claimedAt: time,
    sentAt: time,
    durationMs: z.number().nullable().describe("From the sending to the answer"),
    headers: headersSchema.nullable().describe("As they were sent"),
  })
  .meta({ id: "Attempt" });

export const shownEventSchema = z
  .object({
    ...eventShape,
    headers: headersSchema,
    payload: payloadSchema
      .nullable()
      .describe("Null for those who may not see payloads, and where nobody has it any more"),
    hold: z
      .object({
        pipeline: z.string(),
        lane: z.int(),
        state: z.string(),
        parks: z.boolean(),
        attempts: z.int(),
        firstFailedAt: time,
        lastFailedAt: time,
        errors: failedAttemptsSchema,
      })
      .nullable(),
    followers: z.object({ count: z.int(), isMore: z.boolean() }).nullable(),
    pipelines: z.array(z.string()),
    delivery: z.array(attemptSchema).describe("What was recorded of its attempts, the oldest first"),
    audit: z.array(auditEntrySchema).describe("What people did with it"),
    letterId: z.uuid().nullable().describe("Of the dead letter that waits; null without one"),
    isGone: z.boolean().describe("There is no row of it to be seen: this is what the relay itself remembers"),
  })
  .meta({ id: "ShownEvent" });
