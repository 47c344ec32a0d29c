import { z } from "zod";
import { PIPELINE_STATES } from "../../operations/pipelines/status.ts";
import { causeSchema, gradeSchema } from "./health.ts";

const pauseSchema = z.object({
  at: z.string(),
  by: z.string(),
  reason: z.string().nullable(),
  lanesWanted: z.int().nullable(),
});

/** A rate limit that an operator has set. */
const limitSchema = z.object({
  perSecond: z.number(),
  by: z.string().nullable(),
  reason: z.string().nullable(),
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
  limit: limitSchema.nullable().describe("Rate limit per instance in events per second, set by an operator"),
  log: z.enum(["managed", "tail", "wal"]).nullable(),
  subscriber: z.string().nullable(),
};

/** All pipelines. */
export const pipelinesSchema = z.object({ pipelines: z.array(z.object(pipelineShape).meta({ id: "Pipeline" })) });

/** Pipelines, lanes and instances. */
export const statusSchema = z
  .object({
    relaySchema: z.string(),
    schemaVersion: z.int(),
    pipelines: z.array(
      z.object({
        ...pipelineShape,
        state: z.enum(PIPELINE_STATES),
        isServed: z.boolean(),
        ownedLanes: z.int(),
        freeLanes: z.int(),
        pending: z.int().nullable(),
        isEstimate: z.boolean(),
        oldestAgeMs: z.number().nullable(),
        behindDeadLetters: z.int().nullable().describe("Events that wait behind a dead letter of their key"),
        countProblem: z.string().nullable(),
        retrying: z.int(),
        parkedKeys: z.int(),
        deadLetters: z.int(),
      }),
    ),
    unrouted: z
      .array(
        z.object({
          source: z.string(),
          events: z.int(),
          isEstimate: z.boolean(),
          oldestAgeMs: z.number().nullable(),
        }),
      )
      .describe("Tables with events that no route matches"),
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
    grade: gradeSchema,
    causes: z.array(causeSchema),
    problems: z.array(z.string()),
  })
  .meta({ id: "Status" });

/** All lanes with owner and progress. */
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

/** Which pipelines an action has changed. */
export const changedPipelinesSchema = z
  .object({
    pipelines: z.array(z.object({ pipeline: z.string(), hasChanged: z.boolean() })),
  })
  .meta({ id: "ChangedPipelines" });

/** What removing a pipeline gives up. */
export const forgetSchema = z
  .object({
    pipeline: z.string(),
    kind: z.enum(["queue", "log"]),
    servedBy: z
      .array(z.string())
      .describe("Instances that serve the pipeline. It cannot be removed while there are any"),
    deadLetters: z.int().describe("Dead letters that are discarded; their copies stay"),
    retrying: z.int(),
    undelivered: z.int().nullable().describe("Undelivered events of a log; null when they cannot be counted"),
    slot: z.string().nullable().describe("Replication slot that is dropped"),
    givenUp: z.array(z.string()).describe("What is lost, in words"),
    isDone: z.boolean(),
  })
  .meta({ id: "ForgottenPipeline" });

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
