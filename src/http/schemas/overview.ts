import { z } from "zod";
import { causeSchema, gradeSchema } from "./health.ts";
import { time } from "./shared-shapes.ts";

/** One point of the charts. Rates are per second, averaged since the previous point. */
export const pointSchema = z
  .object({
    at: z.iso.datetime(),
    written: z.number().nullable().describe("Events written per second; null when unknown"),
    published: z.number(),
    failed: z.number(),
    pending: z.int().nullable(),
    oldestAgeMs: z.number().nullable(),
    deadLetters: z.int(),
  })
  .meta({ id: "Point" });

/** The points and markers of the charts. */
export const seriesSchema = z.object({
  intervalMs: z.int().describe("Time between two points while a client reads them; twice that otherwise"),
  points: z.array(pointSchema).describe("Oldest first; since the start of this process, at most one hour"),
  markers: z
    .array(z.object({ at: z.iso.datetime(), what: z.string(), pipeline: z.string().nullable() }))
    .describe("Starts, pauses, replays and circuit changes, to draw in the charts"),
});

const DESTINATION_STATES = ["running", "paused", "circuit-open", "unreachable", "idle"] as const;

const windowSchema = z.object({
  requests: z.int().describe("Includes unanswered requests that have waited long"),
  p50Ms: z.number().nullable(),
  p99Ms: z.number().nullable(),
});

const answersSchema = z
  .object({
    lastMinute: windowSchema,
    lastFiveMinutes: windowSchema,
    slow: z
      .object({ since: z.iso.datetime(), presentMs: z.number(), usualMs: z.number() })
      .nullable()
      .describe("Set while the median is several times the usual one"),
  })
  .meta({ id: "Answers", description: "Response times of requests, without replays" });

/** One destination of the overview. */
export const destinationSchema = z
  .object({
    destination: z.string(),
    state: z.enum(DESTINATION_STATES),
    pipelines: z.array(z.string()),
    publishedPerSecond: z.number(),
    failedPerSecond: z.number(),
    p50Ms: z.number().nullable().describe("From the creation of an event to its ack, over the last minutes"),
    p99Ms: z.number().nullable(),
    answers: answersSchema.nullable().describe("Null until this process has sent a request"),
    oldestAgeMs: z.number().nullable(),
    pending: z.int().nullable(),
    isEstimate: z.boolean(),
    behindDeadLetters: z.int().nullable(),
    deadLetters: z.int(),
    circuits: z
      .array(z.object({ topic: z.string().nullable(), reason: z.string() }))
      .describe("Open circuits of this instance; a null topic means the whole destination"),
    lastError: z.object({ at: z.iso.datetime(), reason: z.string() }).nullable(),
  })
  .meta({ id: "Destination" });

/** The state of the relay at one moment. */
export const overviewSchema = z
  .object({
    at: z.iso.datetime(),
    service: z.string(),
    health: z.enum(["healthy", "degraded", "unhealthy"]),
    grade: gradeSchema,
    causes: z.array(causeSchema),
    problems: z.array(z.object({ what: z.string(), fix: z.string().nullable() })),
    pending: z.int().nullable(),
    isEstimate: z.boolean(),
    oldestAgeMs: z.number().nullable(),
    drainMs: z
      .number()
      .nullable()
      .describe("Time until the backlog is empty at the current rate; null when it does not shrink"),
    writtenPerSecond: z.number().nullable(),
    publishedPerSecond: z.number(),
    failedPerSecond: z.number(),
    retrying: z.int(),
    parkedKeys: z.int(),
    behindDeadLetters: z.int().nullable().describe("Events that wait behind a dead letter of their key"),
    deadLetters: z.int(),
    unrouted: z.int().nullable().describe("Events without a route; null when unknown"),
    isUnroutedEstimate: z.boolean(),
    publishedTotal: z.string(),
    destinations: z.array(destinationSchema),
    instances: z.array(z.object({ id: z.string(), name: z.string(), joinedAt: time, lanes: z.int() })),
    lastPoint: pointSchema.nullable(),
  })
  .meta({ id: "Overview" });
