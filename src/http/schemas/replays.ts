import { z } from "zod";
import { ITEM_STATES, PLAN_STATES } from "../../operations/replay/plan-states.ts";
import { countsSchema, time } from "./shared-shapes.ts";

export const planSchema = z
  .object({
    id: z.uuid(),
    action: z.enum(["replay", "discard"]),
    subject: z.enum(["dead", "delivered"]),
    filter: z.string().describe("What was asked for, in the filter language"),
    state: z.enum(PLAN_STATES),
    stage: z.enum(["first", "ten", "rest"]).describe("One event goes first, then ten, then the rest"),
    ratePerSecond: z.number().nullable(),
    count: z.int(),
    keys: z.int(),
    byType: countsSchema,
    bySource: countsSchema,
    byError: countsSchema,
    warnings: z.array(z.string()),
    progress: z.object({
      waiting: z.int(),
      sent: z.int().describe("On their way again, and not yet known to be delivered"),
      done: z.int(),
      failed: z.int(),
      left: z.int().describe("Not touched, because they were no longer as the plan had found them"),
    }),
    createdAt: z.iso.datetime(),
    createdBy: z.string(),
    reason: z.string().nullable(),
    startedAt: time,
    startedBy: z.string().nullable(),
    finishedAt: time,
    stopReason: z.string().nullable(),
    isServed: z.boolean().describe("Whether a process works on it at this moment"),
  })
  .meta({ id: "ReplayPlan" });

export const planPageSchema = z.object({ plans: z.array(planSchema), cursor: z.string().nullable() });

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
