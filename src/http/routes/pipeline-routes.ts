import { z } from "zod";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import { listLanes } from "../../operations/pipelines/lane-list.ts";
import { LIMIT_PER_SECOND_MAX, LIMIT_PER_SECOND_MIN, limitPipelines } from "../../operations/pipelines/limit.ts";
import { type PauseChange, pausePipelines, resumePipelines } from "../../operations/pipelines/pause.ts";
import { forgetPipeline, planForget } from "../../operations/pipelines/pipeline-forget.ts";
import { knownPipelines, pipelinesMeant } from "../../operations/pipelines/pipelines.ts";
import { readStatus } from "../../operations/pipelines/status.ts";
import { errorSchema, HttpError } from "../http-error.ts";
import { authorOf, by, mayReason, namedAuthor } from "../identity.ts";
import { type Answer, ok, type Route, route } from "../route.ts";
import {
  changedPipelinesSchema,
  forgetSchema,
  lanesSchema,
  pipelinesSchema,
  statusSchema,
} from "../schemas/pipelines.ts";

const params = z.object({
  name: z.string().min(1).max(500).describe("Name of a pipeline, a source such as schema.table, or a schema"),
});

const perSecond = z.number().min(LIMIT_PER_SECOND_MIN).max(LIMIT_PER_SECOND_MAX).nullable();

/** More than any service has. */
const BULK_PIPELINES_MAX = 1_000;

const answers: Route["answers"] = {
  200: { description: "The selected pipelines, and whether each has changed", schema: changedPipelinesSchema },
  404: { description: "No pipeline, source or schema has this name", schema: errorSchema },
};

export function pipelineRoutes(target: () => OperationTarget): Route[] {
  return [...readRoutes(target), ...changeRoutes(target), bulkRoute(target), forgetRoute(target)];
}

function changeRoutes(target: () => OperationTarget): Route[] {
  const change = async (
    name: string,
    act: (names: readonly string[]) => Promise<readonly PauseChange[]>,
  ): Promise<Answer> => {
    const known = await knownPipelines(target().database);
    const meant = pipelinesMeant(known, name).map(({ pipeline }) => pipeline);
    if (meant.length > 0) return ok({ pipelines: await act(meant) });
    const names = known.map(({ pipeline }) => pipeline).join(", ") || "none yet";
    throw new HttpError(404, "NOT_FOUND", `No pipeline, source or schema ${name}`, `Pipelines here: ${names}.`);
  };
  return [
    route({
      method: "POST",
      path: "/api/v1/pipelines/{name}/pause",
      id: "pausePipeline",
      summary: "Pause the delivery; events in flight are finished",
      access: "operator",
      params,
      body: z.strictObject({
        by,
        reason: mayReason,
      }),
      answers,
      handle: ({ params: { name }, body: { by: who, reason }, identity }) =>
        change(name, (names) => pausePipelines(target().database, names, namedAuthor(identity, who, reason))),
    }),
    route({
      method: "POST",
      path: "/api/v1/pipelines/{name}/resume",
      id: "resumePipeline",
      summary: "Resume the delivery",
      access: "operator",
      params,
      answers,
      handle: ({ params: { name }, identity }) =>
        change(name, (names) => resumePipelines(target().database, names, namedAuthor(identity, undefined))),
    }),
    route({
      method: "POST",
      path: "/api/v1/pipelines/{name}/limit",
      id: "limitPipeline",
      summary: "Rate limit per instance in events per second; null removes it",
      access: "operator",
      params,
      body: z.strictObject({
        perSecond,
        reason: mayReason,
      }),
      answers,
      handle: ({ params: { name }, body: { perSecond, reason }, identity }) =>
        change(name, (names) => limitPipelines(target().database, names, perSecond, authorOf(identity, reason))),
    }),
  ];
}

/** All in one transaction: one unknown name, and no pipeline is changed. */
function bulkRoute(target: () => OperationTarget): Route {
  return route({
    method: "POST",
    path: "/api/v1/pipelines/bulk",
    id: "changePipelines",
    summary: "Pause, resume or limit several pipelines",
    access: "operator",
    body: z.strictObject({
      action: z.enum(["pause", "resume", "limit"]),
      pipelines: z.array(z.string().min(1).max(500)).min(1).max(BULK_PIPELINES_MAX).describe("Full names of pipelines"),
      perSecond: perSecond.optional().describe("Required for the action limit; null removes the limit"),
      reason: mayReason,
    }),
    answers,
    handle: async ({ body, identity }) => {
      const { database } = target();
      if ((body.action === "limit") !== (body.perSecond !== undefined)) {
        throw new HttpError(
          400,
          "BAD_REQUEST",
          "perSecond is required for the action limit, and not allowed for others",
        );
      }
      const known = new Set((await knownPipelines(database)).map(({ pipeline }) => pipeline));
      const unknown = body.pipelines.filter((it) => !known.has(it));
      if (unknown.length > 0) {
        const which = unknown.slice(0, 5).join(", ");
        throw new HttpError(404, "NOT_FOUND", `No such pipeline: ${which}`, "GET /api/v1/pipelines lists them.");
      }
      const author = authorOf(identity, body.reason);
      if (body.action === "pause") return ok({ pipelines: await pausePipelines(database, body.pipelines, author) });
      if (body.action === "resume") return ok({ pipelines: await resumePipelines(database, body.pipelines, author) });
      return ok({ pipelines: await limitPipelines(database, body.pipelines, body.perSecond ?? null, author) });
    },
  });
}

/** Takes the full name only, so that a schema's pipelines are not all removed by mistake. */
function forgetRoute(target: () => OperationTarget): Route {
  return route({
    method: "POST",
    path: "/api/v1/pipelines/{name}/forget",
    id: "forgetPipeline",
    summary: "Remove a pipeline that is no longer configured, with its progress and dead letters",
    access: "operator",
    params: z.object({
      name: z.string().min(1).max(500).describe("Full name of the pipeline, such as schema.table->destination"),
    }),
    body: z.strictObject({
      dryRun: z.boolean().default(false).describe("Report what would be lost, without changing anything"),
      giveUpEvents: z
        .boolean()
        .default(false)
        .describe("Also remove a pipeline with undelivered events. They are never delivered then"),
      reason: mayReason,
    }),
    answers: {
      200: { description: "What the removal gives up", schema: forgetSchema },
      404: { description: "No pipeline has this name", schema: errorSchema },
      409: { description: "An instance serves the pipeline, or it has undelivered events", schema: errorSchema },
    },
    handle: async ({ body: { dryRun, giveUpEvents: giveUp, reason }, identity, params: { name } }) => {
      const known = (await knownPipelines(target().database)).find(({ pipeline }) => pipeline === name);
      if (known === undefined) {
        throw new HttpError(404, "NOT_FOUND", `No pipeline ${name}`, "GET /api/v1/pipelines lists them.");
      }
      if (dryRun) return ok({ ...(await planForget(target(), known)), isDone: false });
      const author = authorOf(identity, reason);
      return ok({ ...(await forgetPipeline(target(), known, { author, giveUp })), isDone: true });
    },
  });
}

function readRoutes(target: () => OperationTarget): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/status",
      id: "status",
      summary: "Pipelines with their backlog, lanes, and instances",
      access: "viewer",
      answers: { 200: { description: "The state of all instances, from the database", schema: statusSchema } },
      handle: async () => ok(await readStatus(target())),
    }),
    route({
      method: "GET",
      path: "/api/v1/pipelines",
      id: "listPipelines",
      summary: "Pipelines with source and destination",
      access: "viewer",
      answers: { 200: { description: "All pipelines", schema: pipelinesSchema } },
      handle: async () => ok({ pipelines: await knownPipelines(target().database) }),
    }),
    route({
      method: "GET",
      path: "/api/v1/lanes",
      id: "listLanes",
      summary: "Lanes with owner and progress",
      access: "viewer",
      answers: { 200: { description: "All lanes", schema: lanesSchema } },
      handle: async () => ok({ lanes: await listLanes(target().database) }),
    }),
  ];
}
