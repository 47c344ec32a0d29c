import { z } from "zod";
import { KEY_KINDS } from "../../operations/keys/key-list.ts";
import { time } from "./shared-shapes.ts";

export const keysSchema = z.object({
  keys: z.array(
    z
      .object({
        pipeline: z.string(),
        source: z.string(),
        key: z.string(),
        kind: z.enum(KEY_KINDS),
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
          .describe(
            "Events behind it; null when they could not be counted in time. Of a log there may be more, unread",
          ),
        recent: z
          .object({ count: z.int(), of: z.int() })
          .nullable()
          .describe("How many of the newest events of the source have this key; null unless hot keys were asked for"),
      })
      .meta({ id: "KeyOfEvents" }),
  ),
  cursor: z.string().nullable(),
});

export const keyChangeSchema = z.object({
  changed: z.array(z.string()).describe("Ids of the events that were changed"),
});
