import { z } from "zod";
import { time } from "./common.ts";

export const keysSchema = z.object({
  keys: z.array(
    z
      .object({
        pipeline: z.string(),
        source: z.string(),
        key: z.string(),
        kind: z.enum(["parked", "retrying", "hot"]),
        head: z
          .object({
            id: z.string(),
            type: z.string().nullable(),
            state: z.enum(["retrying", "suspect", "dead"]),
            attempts: z.int(),
            reason: z.string(),
            firstFailedAt: time,
            nextAttemptAt: time,
          })
          .nullable()
          .describe("The event that everything of this key waits for; null for a key that is merely busy"),
        waiting: z
          .object({ count: z.int(), isMore: z.boolean() })
          .nullable()
          .describe("Events behind it; null when they could not be counted in time"),
      })
      .meta({ id: "KeyOfEvents" }),
  ),
  cursor: z.string().nullable(),
});

export const keyChangeSchema = z.object({
  changed: z.array(z.string()).describe("Ids of the events that were changed"),
});
