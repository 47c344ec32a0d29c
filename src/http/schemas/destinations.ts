import { z } from "zod";
import { limitSchema } from "./pipelines.ts";

/** Destinations with their pipelines. */
export const destinationsSchema = z.object({
  destinations: z.array(
    z
      .object({
        destination: z.string(),
        pipelines: z.array(z.string()),
        pause: z
          .object({ at: z.iso.datetime(), by: z.string(), reason: z.string().nullable() })
          .nullable()
          .describe("Applies to all pipelines of the destination, including future ones"),
        limit: limitSchema.nullable().describe("Per pipeline and instance; the rates add up"),
      })
      .meta({ id: "KnownDestination" }),
  ),
});
