import { z } from "zod";

/** With all of its digits; null where nobody knows it. */
export const time = z.iso.datetime().nullable();

/** Sources that could not be looked at, which kept nobody from looking at the others. */
export const brokenSchema = z.array(z.object({ source: z.string(), reason: z.string() }));

export const headersSchema = z.record(z.string(), z.string());

export const countsSchema = z.record(z.string(), z.int());
