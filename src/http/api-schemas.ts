import { z } from "zod";
import { EVENT_STATES } from "../operations/event-filter.ts";

const time = z.iso.datetime().nullable();

const pauseSchema = z.object({
  at: z.string(),
  by: z.string(),
  reason: z.string().nullable(),
  lanesWanted: z.int().nullable(),
});

const pipelineShape = {
  pipeline: z.string(),
  source: z.string(),
  schema: z.string(),
  table: z.string(),
  destination: z.string(),
  delivery: z.enum(["exactly-once", "at-least-once"]),
  lanes: z.int(),
  pause: pauseSchema.nullable(),
  log: z.enum(["managed", "tail", "wal"]).nullable(),
  subscriber: z.string().nullable(),
};

export const pipelinesSchema = z.object({ pipelines: z.array(z.object(pipelineShape).meta({ id: "Pipeline" })) });

export const statusSchema = z
  .object({
    relaySchema: z.string(),
    schemaVersion: z.int(),
    pipelines: z.array(
      z.object({
        ...pipelineShape,
        isServed: z.boolean(),
        ownedLanes: z.int(),
        freeLanes: z.int(),
        pending: z.int().nullable(),
        isEstimate: z.boolean(),
        oldestAgeMs: z.number().nullable(),
        countProblem: z.string().nullable(),
        retrying: z.int(),
        parkedKeys: z.int(),
        deadLetters: z.int(),
      }),
    ),
    instances: z.array(
      z.object({
        id: z.string(),
        name: z.string(),
        joinedAt: z.string(),
        leaseRemainingMs: z.number(),
        pipelines: z.array(z.string()),
        lanes: z.int(),
      }),
    ),
    problems: z.array(z.string()),
  })
  .meta({ id: "Status" });

export const lanesSchema = z.object({
  lanes: z.array(
    z
      .object({
        pipeline: z.string(),
        lane: z.int(),
        owner: z.object({ id: z.string(), name: z.string().nullable(), isAlive: z.boolean() }).nullable(),
        epoch: z.string(),
        settledBatch: z.string(),
        crashes: z.int(),
        published: z.string(),
        settledAt: z.string().nullable(),
      })
      .meta({ id: "Lane" }),
  ),
});

const brokenSchema = z.array(z.object({ source: z.string(), reason: z.string() }));

export const sourcesSchema = z.object({
  sources: z.array(z.object({ source: z.string(), pipelines: z.array(z.string()) })),
  broken: brokenSchema,
});

export const changedPipelinesSchema = z.object({
  pipelines: z.array(z.object({ pipeline: z.string(), hasChanged: z.boolean() })),
});

const eventShape = {
  source: z.string(),
  id: z.string(),
  type: z.string(),
  key: z.string().nullable(),
  correlationId: z.string().nullable(),
  createdAt: time,
  state: z.enum(EVENT_STATES),
  attempts: z.int().nullable().describe("Failures so far, of one that has failed"),
  reason: z.string().nullable(),
  nextAttemptAt: time,
  parkedBehind: z.string().nullable().describe("The event that keeps this one waiting"),
};

export const eventPageSchema = z.object({
  events: z.array(z.object(eventShape).meta({ id: "Event" })),
  cursor: z.string().nullable().describe("Of the next page; null at the end"),
  broken: brokenSchema,
});

const payloadSchema = z
  .object({
    encoding: z.enum(["utf-8", "base64"]),
    text: z.string(),
    bytes: z.int(),
    isTruncated: z.boolean(),
  })
  .meta({ id: "Payload" });

const attemptsSchema = z.array(
  z.object({ at: z.string(), attempt: z.int(), reason: z.string() }).meta({ id: "FailedAttempt" }),
);

const headersSchema = z.record(z.string(), z.string());

export const shownEventSchema = z
  .object({
    ...eventShape,
    headers: headersSchema,
    payload: payloadSchema,
    hold: z
      .object({
        pipeline: z.string(),
        lane: z.int(),
        state: z.string(),
        parks: z.boolean(),
        attempts: z.int(),
        firstFailedAt: time,
        lastFailedAt: time,
        errors: attemptsSchema,
      })
      .nullable(),
    followers: z.object({ count: z.int(), isMore: z.boolean() }).nullable(),
  })
  .meta({ id: "ShownEvent" });

const letterShape = {
  letterId: z.string(),
  source: z.string(),
  pipeline: z.string(),
  id: z.string(),
  type: z.string(),
  key: z.string().nullable(),
  correlationId: z.string().nullable(),
  reason: z.string(),
  group: z.string(),
  failures: z.int(),
  firstFailedAt: time,
  lastFailedAt: time,
  resolution: z
    .object({
      how: z.enum(["replayed", "discarded"]),
      at: z.string(),
      by: z.string().nullable(),
      reason: z.string().nullable(),
    })
    .nullable(),
};

export const letterPageSchema = z.object({
  deadLetters: z.array(z.object(letterShape).meta({ id: "DeadLetter" })),
  cursor: z.string().nullable(),
});

export const shownLettersSchema = z.object({
  deadLetters: z.array(
    z
      .object({
        ...letterShape,
        headers: headersSchema,
        payload: payloadSchema,
        createdAt: time,
        errors: attemptsSchema,
      })
      .meta({ id: "ShownDeadLetter" }),
  ),
});

export const groupsSchema = z.object({
  groups: z.array(
    z
      .object({
        group: z.string(),
        error: z.string(),
        count: z.int(),
        keys: z.int(),
        sources: z.array(z.string()),
        types: z.array(z.string()),
        firstFailedAt: time,
        lastFailedAt: time,
        exampleId: z.string(),
      })
      .meta({ id: "DeadLetterGroup" }),
  ),
});

const countsSchema = z.record(z.string(), z.int());

export const changeSchema = z
  .object({
    plan: z.object({
      count: z.int(),
      keys: z.int(),
      byType: countsSchema,
      bySource: countsSchema,
      byError: countsSchema,
      parking: z.int(),
      warnings: z.array(z.string()),
    }),
    report: z
      .object({
        done: z.int(),
        left: z.array(z.object({ source: z.string(), id: z.string(), reason: z.string() })),
        leftCount: z.int(),
        unknown: z.array(z.string()),
      })
      .nullable()
      .describe("Null for a dry run"),
  })
  .meta({ id: "DeadLetterChange" });
