import { z } from "zod";
import { failedAttemptsSchema, payloadSchema } from "./events.ts";
import { planSchema, strataSchema } from "./replays.ts";
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

/** One page of dead letters. */
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
        payload: payloadSchema.nullable().describe("Null without the right to see payloads"),
        createdAt: time,
        errors: failedAttemptsSchema,
      })
      .meta({ id: "ShownDeadLetter" }),
  ),
});

/** Dead letters by normalized error. */
export const groupsSchema = z.object({
  groups: z.array(
    z
      .object({
        group: z.string(),
        error: z.string(),
        count: z.int(),
        keys: z.int().describe("Distinct keys in the sample"),
        sources: z.array(z.string()).describe("From the sample, at most 20; so are the types"),
        types: z.array(z.string()),
        sampled: z.int().describe("Size of the sample: the newest dead letters; all of a small group"),
        firstFailedAt: time.describe("When the first of them became a dead letter"),
        lastFailedAt: time,
        exampleId: z.string().describe("The newest event of the group"),
        example: z.string().describe("Its original error"),
        status: z.int().nullable().describe("HTTP status in the error"),
        destinations: z.array(z.string()).describe("From the sample"),
        histogram: z.array(z.int()).describe("New dead letters in each of 24 equal spans from the first to the last"),
      })
      .meta({ id: "DeadLetterGroup" }),
  ),
});

const changePlanSchema = z
  .object({
    count: z.int(),
    keys: z.int(),
    byType: countsSchema,
    bySource: countsSchema,
    byError: countsSchema,
    parking: z.int(),
    warnings: z.array(z.string()),
    strata: strataSchema,
  })
  .meta({ id: "DeadLetterChangePlan" });

export const changeSchema = z
  .object({
    plan: changePlanSchema,
    report: z
      .object({
        done: z.int(),
        left: z.array(z.object({ source: z.string(), id: z.string(), reason: z.string() })),
        leftCount: z.int(),
        unknown: z.array(z.string()),
      })
      .nullable()
      .describe("Null after a dry run"),
  })
  .meta({ id: "DeadLetterChange" });

export const startedChangeSchema = z
  .object({
    plan: changePlanSchema,
    replay: planSchema.describe("The started plan: GET /api/v1/replays/{id} shows its progress"),
    unknown: z.array(z.string()).describe("Ids without an open dead letter"),
  })
  .meta({ id: "StartedDeadLetterChange" });
