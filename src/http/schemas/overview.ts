import { z } from "zod";
import { time } from "./shared-shapes.ts";

/** One moment of the charts. Rates are per second, over the time since the point before. */
export const pointSchema = z
  .object({
    at: z.iso.datetime(),
    written: z.number().nullable().describe("Events a second that came in; null where nobody can tell"),
    published: z.number(),
    failed: z.number(),
    pending: z.int().nullable(),
    oldestAgeMs: z.number().nullable(),
    deadLetters: z.int(),
  })
  .meta({ id: "Point" });

export const seriesSchema = z.object({
  intervalMs: z.int().describe("Between two points while somebody looks; twice that otherwise"),
  points: z.array(pointSchema).describe("The oldest first; since this process has started, an hour at most"),
  markers: z
    .array(z.object({ at: z.iso.datetime(), what: z.string(), pipeline: z.string().nullable() }))
    .describe("Starts, pauses, replays and circuits, to be drawn into the charts"),
});

const DESTINATION_STATES = ["running", "paused", "circuit-open", "unreachable", "idle"] as const;

export const destinationSchema = z
  .object({
    destination: z.string(),
    state: z.enum(DESTINATION_STATES),
    pipelines: z.array(z.string()),
    publishedPerSecond: z.number(),
    failedPerSecond: z.number(),
    p50Ms: z.number().nullable().describe("From the writing of an event to its acknowledgement, of the last minutes"),
    p99Ms: z.number().nullable(),
    oldestAgeMs: z.number().nullable(),
    pending: z.int().nullable(),
    lastError: z.object({ at: z.iso.datetime(), reason: z.string() }).nullable(),
  })
  .meta({ id: "Destination" });

export const overviewSchema = z
  .object({
    at: z.iso.datetime(),
    service: z.string(),
    health: z.enum(["healthy", "degraded", "unhealthy"]),
    problems: z.array(z.object({ what: z.string(), fix: z.string().nullable() })),
    pending: z.int().nullable(),
    isEstimate: z.boolean(),
    oldestAgeMs: z.number().nullable(),
    drainMs: z
      .number()
      .nullable()
      .describe("Until all that waits is out, at the present pace; null when it does not shrink"),
    writtenPerSecond: z.number().nullable(),
    publishedPerSecond: z.number(),
    failedPerSecond: z.number(),
    retrying: z.int(),
    parkedKeys: z.int(),
    deadLetters: z.int(),
    publishedTotal: z.string(),
    destinations: z.array(destinationSchema),
    instances: z.array(z.object({ id: z.string(), name: z.string(), joinedAt: time, lanes: z.int() })),
    lastPoint: pointSchema.nullable(),
  })
  .meta({ id: "Overview" });
