import { z } from "zod";
import { PIPELINE_STATES } from "../../operations/status.ts";

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
  limit: z
    .object({ perSecond: z.number(), by: z.string().nullable(), reason: z.string().nullable() })
    .nullable()
    .describe("Events a second that each instance may send at most, as a person has set it"),
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
        state: z.enum(PIPELINE_STATES),
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

export const changedPipelinesSchema = z.object({
  pipelines: z.array(z.object({ pipeline: z.string(), hasChanged: z.boolean() })),
});
