import { z } from "zod";
import { CAUSE_CODES, GRADES } from "../../core/health-cause.ts";

/** How bad a cause is. */
export const gradeSchema = z
  .enum(GRADES)
  .describe("attention: delivery works, but an operator should act; degraded: a part cannot work; down: nothing works");

/** One reason why the health is not ok. */
export const causeSchema = z
  .object({
    code: z.enum(CAUSE_CODES),
    grade: gradeSchema.exclude(["ok"]),
    pipeline: z.string().nullable(),
    source: z.string().nullable(),
    destination: z.string().nullable(),
    what: z.string().describe("What is wrong"),
    fix: z.string().nullable(),
    since: z.iso.datetime().nullable(),
    link: z.string().describe("Path of the console's screen that handles it"),
    runbook: z.string().optional().describe("Chapter of the documentation; absent where fix is enough"),
  })
  .meta({ id: "HealthCause" });

const problemSchema = z.object({
  part: z.enum(["database", "source", "destination", "relay"]),
  name: z.string(),
  reason: z.string(),
});

/** The health of the service. */
export const healthSchema = z
  .object({
    status: z.enum(["healthy", "degraded", "unhealthy"]),
    grade: gradeSchema,
    causes: z.array(causeSchema).describe("Worst first"),
    service: z.string(),
    timestamp: z.iso.datetime(),
    uptime: z.number().describe("In seconds"),
    lastPollTime: z.iso.datetime().nullable(),
    unpublishedEventCount: z
      .int()
      .nullable()
      .describe("Undelivered events; exact up to 10,000; null before the first count"),
    behindDeadLetterCount: z
      .int()
      .optional()
      .describe("Events that wait behind a dead letter of their key; absent when zero"),
    deadLetterCount: z.int().optional().describe("Open dead letters; absent when zero"),
    unroutedEventCount: z.int().optional().describe("Events without a route; absent when zero"),
    isUnroutedEstimate: z.literal(true).optional().describe("unroutedEventCount is an estimate"),
    isEstimate: z.literal(true).optional().describe("The other counts are estimates"),
    problems: z.array(problemSchema).optional(),
  })
  .meta({ id: "Health" });
