import { z } from "zod";

/** With full precision; null when unknown. */
export const time = z.iso.datetime().nullable();

/** Sources that failed; the others were still read. */
export const brokenSchema = z.array(z.object({ source: z.string(), reason: z.string() }));

/** Headers of an event. */
export const headersSchema = z.record(z.string(), z.string());

/** Counts by name. */
export const countsSchema = z.record(z.string(), z.int());
