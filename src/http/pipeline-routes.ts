import { z } from "zod";
import type { OperationTarget } from "../operations/event-source.ts";
import { listLanes } from "../operations/lane-list.ts";
import { LIMIT_PER_SECOND_MAX, LIMIT_PER_SECOND_MIN, limitPipelines } from "../operations/limit.ts";
import { type PauseChange, pausePipelines, resumePipelines } from "../operations/pause.ts";
import { knownPipelines, pipelinesMeant } from "../operations/pipelines.ts";
import { readStatus } from "../operations/status.ts";
import { errorSchema, HttpError } from "./http-error.ts";
import { authorOf } from "./identity.ts";
import { by, mayReason, namedAuthor } from "./named-author.ts";
import { type Answer, ok, type Route, route } from "./route.ts";
import { changedPipelinesSchema, lanesSchema, pipelinesSchema, statusSchema } from "./schemas/pipelines.ts";

const params = z.object({
  name: z.string().min(1).max(500).describe("A pipeline, a source like schema.table, or a schema"),
});

const answers: Route["answers"] = {
  200: { description: "Those that are meant, and whether anything has changed", schema: changedPipelinesSchema },
  404: { description: "Nothing has this name", schema: errorSchema },
};

export function pipelineRoutes(target: () => OperationTarget): Route[] {
  return [...readRoutes(target), ...changeRoutes(target)];
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
    throw new HttpError(
      404,
      "NOT_FOUND",
      `There is no pipeline, source or schema ${name}`,
      `Pipelines here: ${names}.`,
    );
  };
  return [
    route({
      method: "POST",
      path: "/api/v1/pipelines/{name}/pause",
      id: "pausePipeline",
      summary: "Stop the delivery; what is in flight is finished",
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
      summary: "Let a paused pipeline go on",
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
      summary: "Let each instance send so many events a second at most; null ends it",
      access: "operator",
      params,
      body: z.strictObject({
        perSecond: z.number().min(LIMIT_PER_SECOND_MIN).max(LIMIT_PER_SECOND_MAX).nullable(),
        reason: mayReason,
      }),
      answers,
      handle: ({ params: { name }, body: { perSecond, reason }, identity }) =>
        change(name, (names) => limitPipelines(target().database, names, perSecond, authorOf(identity, reason))),
    }),
  ];
}

function readRoutes(target: () => OperationTarget): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/status",
      id: "status",
      summary: "Pipelines, lanes, instances and what waits",
      access: "viewer",
      answers: { 200: { description: "As the database knows it, of all instances", schema: statusSchema } },
      handle: async () => ok(await readStatus(target())),
    }),
    route({
      method: "GET",
      path: "/api/v1/pipelines",
      id: "listPipelines",
      summary: "Which sources go where",
      access: "viewer",
      answers: { 200: { description: "All of them", schema: pipelinesSchema } },
      handle: async () => ok({ pipelines: await knownPipelines(target().database) }),
    }),
    route({
      method: "GET",
      path: "/api/v1/lanes",
      id: "listLanes",
      summary: "Who serves which slice of a pipeline's keys, and how far it is",
      access: "viewer",
      answers: { 200: { description: "All of them", schema: lanesSchema } },
      handle: async () => ok({ lanes: await listLanes(target().database) }),
    }),
  ];
}
