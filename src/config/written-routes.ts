import { z } from "zod";

const textOrTexts = z.union([z.string(), z.array(z.string()).min(1)]);
const durationText = z.union([z.string(), z.number()]);

export const ENVELOPES = ["raw", "cloudevents-binary", "cloudevents-structured"] as const;

/** A route as people write it. Templates are texts; what is absent is as the settings for all messages say. */
const writtenRoute = z.strictObject({
  types: textOrTexts.optional().describe("Types, or patterns in which * stands for anything; every type by default"),
  when: z
    .record(z.string(), textOrTexts)
    .optional()
    .describe("Conditions on key, correlation_id and header:NAME: a text or pattern, or a list of them"),
  destination: z.string().optional().describe("One of destinations; the only one by default"),
  topic: z.string().optional().describe("A template, such as eu.{type}"),
  key: z.string().optional().describe("A template, such as {header:tenant}"),
  headers: z.record(z.string(), z.string()).optional().describe("More headers, a template each"),
  envelope: z.enum(ENVELOPES).optional(),
  onExhausted: z.enum(["park", "block", "skip"]).optional(),
  retry: z
    .strictObject({
      maxAttempts: z.int().min(1).max(1_000).optional(),
      initialDelay: durationText.optional(),
      maxDelay: durationText.optional(),
      jitter: z.number().min(0).max(1).optional(),
      schedule: z.array(durationText).min(1).max(100).optional(),
    })
    .optional()
    .describe("As the settings of the same names; schedule lists the pauses instead"),
});

export type WrittenRoute = z.output<typeof writtenRoute>;

export const writtenRoutes = z.array(writtenRoute).min(1).max(1_000);

/** Who reads a log: a route with a name and progress of its own. */
const writtenSubscriber = writtenRoute.extend({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]{0,30}$/, "a name of at most 31 small letters, digits, - and _")
    .describe("Its progress is kept under it: whoever renames it begins anew"),
  start: z.string().optional().describe("Where it begins: beginning, now, or a time; LOG_START by default"),
});

export type WrittenSubscriber = z.output<typeof writtenSubscriber>;

export const writtenSubscribers = z.array(writtenSubscriber).min(1).max(100);

/** A destination by its name, with the settings that `destination` has. */
export const writtenDestinations = z.record(
  z.string().regex(/^[a-z0-9][a-z0-9_-]{0,62}$/i, "a name of letters, digits, - and _"),
  z.record(z.string(), z.unknown()),
);

export type WrittenDestinations = z.output<typeof writtenDestinations>;
