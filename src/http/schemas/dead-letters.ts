import { z } from "zod";
import { failedAttemptsSchema, payloadSchema } from "./events.ts";
import { countsSchema, headersSchema, time } from "./shared-shapes.ts";

const letterShape = {
  letterId: z.string(),
  source: z.string(),
  pipeline: z.string(),
  id: z.string(),
  type: z.string(),
  key: z.string().nullable(),
  correlationId: z.string().nullable(),
  reason: z.string(),
  group: z.string(),
  failures: z.int(),
  firstFailedAt: time,
  lastFailedAt: time,
  resolution: z
    .object({
      how: z.enum(["replayed", "discarded"]),
      at: z.string(),
      by: z.string().nullable(),
      reason: z.string().nullable(),
    })
    .nullable(),
};

export const letterPageSchema = z.object({
  deadLetters: z.array(z.object(letterShape).meta({ id: "DeadLetter" })),
  cursor: z.string().nullable(),
});

export const shownLettersSchema = z.object({
  deadLetters: z.array(
    z
      .object({
        ...letterShape,
        headers: headersSchema,
        payload: payloadSchema.nullable().describe("Null for those who may not see payloads"),
        createdAt: time,
        errors: failedAttemptsSchema,
      })
      .meta({ id: "ShownDeadLetter" }),
  ),
});

export const groupsSchema = z.object({
  groups: z.array(
    z
      .object({
        group: z.string(),
        error: z.string(),
        count: z.int(),
        keys: z.int().describe("Different keys among those that were sampled"),
        sources: z.array(z.string()).describe("Of those that were sampled, 20 at most; so are the types"),
        types: z.array(z.string()),
        sampled: z.int().describe("How many were looked at, the newest; all of them in a small group"),
        firstFailedAt: time.describe("When the first of them died"),
        lastFailedAt: time,
        exampleId: z.string(),
        histogram: z.array(z.int()).describe("How many died in each of 24 equal spans from the first to the last"),
      })
      .meta({ id: "DeadLetterGroup" }),
  ),
});

export const changeSchema = z
  .object({
    plan: z.object({
      count: z.int(),
      keys: z.int(),
      byType: countsSchema,
      bySource: countsSchema,
      byError: countsSchema,
      parking: z.int(),
      warnings: z.array(z.string()),
    }),
    report: z
      .object({
        done: z.int(),
        left: z.array(z.object({ source: z.string(), id: z.string(), reason: z.string() })),
        leftCount: z.int(),
        unknown: z.array(z.string()),
      })
      .nullable()
      .describe("Null for a dry run"),
  })
  .meta({ id: "DeadLetterChange" });
