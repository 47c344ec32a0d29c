import { z } from "zod";
import { EVENT_STATES } from "../../operations/events/event-filter.ts";
import { WAIT_REASONS } from "../../operations/events/event-read.ts";
import { auditEntrySchema } from "./service.ts";
import { brokenSchema, headersSchema, time } from "./shared-shapes.ts";

/** Readable sources, and those that cannot be read. */
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
  attempts: z.int().nullable().describe("Number of failures so far; null without a failure"),
  reason: z.string().nullable(),
  nextAttemptAt: time,
  parkedBehind: z.string().nullable().describe("The event that this one waits for"),
  pipeline: z
    .string()
    .nullable()
    .describe("The pipeline whose route matches it now; null when none does, in a log, and when it is unknown"),
  waitsFor: z
    .enum(WAIT_REASONS)
    .nullable()
    .describe("What it waits for besides earlier events: its pipeline is paused, or it is scheduled for nextAttemptAt"),
};

/** One page of events. */
export const eventPageSchema = z.object({
  events: z.array(z.object(eventShape).meta({ id: "ListedEvent" })),
  cursor: z.string().nullable().describe("Cursor of the next page; null at the end"),
  broken: brokenSchema,
  also: z
    .string()
    .nullable()
    .describe("A filter that also searches payloads for the bare word; set when few events matched without"),
  covered: z
    .array(
      z.object({
        source: z.string(),
        upTo: time,
        isComplete: z.boolean(),
        looked: z
          .int()
          .nullable()
          .describe("Number of the newest rows that were searched, over all pages so far; null where unknown"),
        total: z.int().nullable().describe("Estimated number of rows of the source"),
      }),
    )
    .describe("How far back a search without an index came before its time limit"),
});

/** A payload as text or base64, possibly cut. */
export const payloadSchema = z
  .object({
    encoding: z.enum(["utf-8", "base64"]),
    text: z.string(),
    bytes: z.int(),
    isTruncated: z.boolean(),
  })
  .meta({ id: "Payload" });

/** Failed attempts, oldest first. */
export const failedAttemptsSchema = z.array(
  z.object({ at: z.string(), attempt: z.int(), reason: z.string() }).meta({ id: "FailedAttempt" }),
);

/** A recorded attempt: every failed one, and of the others as many as the settings allow. */
export const attemptSchema = z
  .object({
    at: z.iso.datetime(),
    pipeline: z.string(),
    instance: z.string().nullable(),
    outcome: z.enum(["delivered", "failed", "dead"]),
    attempt: z.int(),
    reason: z.string().nullable(),
    errorType: z.string().nullable(),
    target: z.string().nullable().describe("Topic, subject, stream, queue or URL"),
    writtenAt: time,
    claimedAt: time,
    sentAt: time,
    durationMs: z.number().nullable().describe("From the request to its response"),
    headers: headersSchema.nullable().describe("Headers as sent"),
  })
  .meta({ id: "Attempt" });

const contentSchema = z.object({ headers: headersSchema, payload: payloadSchema.nullable() });

/** One edit of a payload or its headers. */
export const editSchema = z
  .object({
    id: z.string(),
    at: z.iso.datetime(),
    pipeline: z.string(),
    by: z.string(),
    reason: z.string().nullable(),
    plan: z.uuid().nullable().describe("The plan whose patch made the edit; null for an edit by hand"),
    before: contentSchema,
    after: contentSchema,
  })
  .meta({ id: "Edit" });

/** One event with everything that is known of it. */
export const shownEventSchema = z
  .object({
    ...eventShape,
    headers: headersSchema,
    payload: payloadSchema
      .nullable()
      .describe("Null without the right to see payloads, and when no copy exists any more"),
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
    delivery: z.array(attemptSchema).describe("Recorded attempts, oldest first"),
    audit: z.array(auditEntrySchema).describe("Actions of operators on the event"),
    edits: z.array(editSchema).describe("Edits of payload and headers, newest first; kept for 30 days"),
    traceUrl: z
      .string()
      .nullable()
      .describe("Link to the trace, built from TRACE_URL; null where it is not configured"),
    letterId: z.uuid().nullable().describe("Id of the open dead letter; null without one"),
    isGone: z.boolean().describe("The event's row is gone: these are the relay's own records"),
  })
  .meta({ id: "ShownEvent" });

/** The history of all events of a correlation id. */
export const correlationSchema = z
  .object({
    correlationId: z.string(),
    events: eventPageSchema.shape.events,
    steps: z
      .array(
        z.object({
          at: z.iso.datetime(),
          what: z.enum(["written", "delivered", "failed", "dead"]),
          id: z.string(),
          source: z.string(),
          type: z.string(),
          key: z.string().nullable(),
          pipeline: z.string().nullable().describe("Null for the creation of the event"),
          destination: z.string().nullable(),
          durationMs: z.number().nullable(),
          reason: z.string().nullable(),
        }),
      )
      .describe("History of these events in order of time; deliveries as far as they were recorded"),
    isMore: z.boolean().describe("Not all events of this id are shown"),
    traceUrl: z.string().nullable(),
  })
  .meta({ id: "Correlation" });
