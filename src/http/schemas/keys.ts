import { z } from "zod";
import { KEY_KINDS } from "../../operations/keys/key-list.ts";
import { time } from "./shared-shapes.ts";

/** One page of keys. */
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
          .describe("The event that blocks the key; null for a hot key that is not blocked"),
        waiting: z
          .object({ count: z.int(), isMore: z.boolean() })
          .nullable()
          .describe(
            "Events that wait behind it; null when the count timed out. A log may have more that are not read yet",
          ),
        recent: z
          .object({ count: z.int(), of: z.int() })
          .nullable()
          .describe("How many of the newest events of the source have this key; null unless hot keys were requested"),
      })
      .meta({ id: "KeyOfEvents" }),
  ),
  cursor: z.string().nullable(),
});

/** The result of an action on one key. */
export const keyChangeSchema = z
  .object({
    changed: z.array(z.string()).describe("Ids of the changed events"),
  })
  .meta({ id: "ChangedEvents" });

/** The result of an action on several keys. */
export const keyBulkSchema = z.object({
  changed: z.array(z.string()).describe("Ids of the changed events"),
  failed: z.array(z.object({ pipeline: z.string(), key: z.string(), reason: z.string() })),
});
