import { z } from "zod";
import { ITEM_STATES, PLAN_STATES } from "../../operations/replay/frozen-plan.ts";
import { payloadSchema } from "./events.ts";
import { countsSchema, time } from "./shared-shapes.ts";

const stratumShape = {
  destination: z.string().nullable().describe("Null for the combined stratum of all small ones"),
  type: z.string().nullable(),
  group: z.string().nullable().describe("Fingerprint of the error; null for delivered events"),
  error: z.string().nullable(),
  count: z.int(),
};

/** Events of a plan by destination, error and type. */
export const strataSchema = z
  .array(z.object(stratumShape).meta({ id: "Stratum" }))
  .describe("By destination, error and type, largest first");

/** A replay plan with its progress. */
export const planSchema = z
  .object({
    id: z.uuid(),
    action: z.enum(["replay", "discard"]),
    subject: z.enum(["dead", "delivered"]),
    filter: z.string().describe("The filter that selected the events"),
    state: z.enum(PLAN_STATES),
    stage: z
      .enum(["first", "ten", "rest"])
      .describe("First one event of each stratum, then ten of each, then the rest"),
    ratePerSecond: z.number().nullable(),
    patch: z
      .string()
      .nullable()
      .describe("JSON merge patch for each payload; null without one, and without the right to see payloads"),
    count: z.int(),
    keys: z.int(),
    byType: countsSchema,
    bySource: countsSchema,
    byError: countsSchema,
    warnings: z.array(z.string()),
    progress: z.object({
      waiting: z.int(),
      sent: z.int().describe("Released, and not yet delivered"),
      done: z.int(),
      failed: z.int(),
      left: z.int().describe("Skipped, because they had changed since the plan was created"),
    }),
    strata: z
      .array(
        z
          .object({
            ...stratumShape,
            sent: z.int(),
            done: z.int(),
            failed: z.int(),
            left: z.int(),
            passed: z.int().describe("Delivered since the last start of the plan"),
            failure: z.string().nullable().describe("Why the plan stopped replaying this stratum"),
          })
          .meta({ id: "PlanStratum" }),
      )
      .describe("By destination, error and type, largest first. A replay starts with one event of each"),
    createdAt: z.iso.datetime(),
    createdBy: z.string(),
    reason: z.string().nullable(),
    startedAt: time,
    startedBy: z.string().nullable(),
    finishedAt: time,
    stopReason: z.string().nullable(),
    isServed: z.boolean().describe("Whether a process is working on it"),
  })
  .meta({ id: "ReplayPlan" });

/** One page of plans. */
export const planPageSchema = z.object({ plans: z.array(planSchema), cursor: z.string().nullable() });

/** One page of a plan's events. */
export const planItemsSchema = z.object({
  items: z.array(
    z
      .object({
        seq: z.string(),
        pipeline: z.string(),
        source: z.string(),
        id: z.string(),
        type: z.string(),
        key: z.string().nullable(),
        state: z.enum(ITEM_STATES),
        reason: z.string().nullable(),
        changedAt: time,
      })
      .meta({ id: "ReplayItem" }),
  ),
  cursor: z.string().nullable(),
});

/** Examples of a patch. */
export const patchPreviewSchema = z.object({
  examples: z.array(
    z
      .object({
        id: z.string(),
        type: z.string(),
        source: z.string(),
        pipeline: z.string(),
        before: payloadSchema,
        after: payloadSchema.nullable().describe("Null when the payload cannot be patched; the event is skipped then"),
        problem: z.string().nullable(),
      })
      .meta({ id: "PatchExample" }),
  ),
});
