import { z } from "zod";

const textOrTexts = z.union([z.string(), z.array(z.string()).min(1)], { error: "write a text, or a list of texts" });
const durationText = z.union([z.string(), z.number()], { error: "write a time like 30s" });

/** The forms of a message: the payload alone, or CloudEvents. */
export const ENVELOPES = ["raw", "cloudevents-binary", "cloudevents-structured"] as const;

/** A route as written. Templates are strings; an absent field takes the setting for all messages. */
const writtenRoute = z.strictObject({
  types: textOrTexts.optional().describe("Types, or patterns in which * matches anything; every type by default"),
  when: z
    .record(z.string(), textOrTexts)
    .optional()
    .describe("Conditions on key, correlation_id and header:NAME: a string or pattern, or a list of them"),
  destination: z.string().optional().describe("A name of destinations; the only one by default"),
  topic: z.string().optional().describe("A template, such as eu.{type}"),
  key: z.string().optional().describe("A template, such as {header:tenant}"),
  headers: z.record(z.string(), z.string()).optional().describe("Additional headers, a template each"),
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
    .describe("As the settings of the same names; schedule lists the delays instead"),
});

/** A route as written. */
export type WrittenRoute = z.output<typeof writtenRoute>;

/** The value of OUTBOX_ROUTES. */
export const writtenRoutes = z.array(writtenRoute).min(1).max(1_000);

/** A reader of logs: a route with a name and its own progress. */
const writtenSubscriber = writtenRoute.extend({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]{0,30}$/, "a name of at most 31 lower-case letters, digits, - and _")
    .describe("Its progress is stored under this name: renaming it starts again"),
  start: z.string().optional().describe("Where it starts reading: beginning, now, or a time; LOG_START by default"),
});

/** A subscriber as written. */
export type WrittenSubscriber = z.output<typeof writtenSubscriber>;

/** The value of OUTBOX_SUBSCRIBERS. */
export const writtenSubscribers = z.array(writtenSubscriber).min(1).max(100);

/** The value of OUTBOX_DESTINATIONS: names, each with the keys that `destination` has. */
export const writtenDestinations = z.record(
  z.string().regex(/^[a-z0-9][a-z0-9_-]{0,62}$/i, "a name of letters, digits, - and _"),
  z.record(z.string(), z.unknown(), { error: "write its settings, such as { url: nats://host:4222 }" }),
);

/** Destinations as written. */
export type WrittenDestinations = z.output<typeof writtenDestinations>;
