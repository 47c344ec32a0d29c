import { z } from "zod";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import {
  knownDestinations,
  limitDestination,
  pauseDestination,
  resumeDestination,
} from "../../operations/pipelines/destinations.ts";
import { LIMIT_PER_SECOND_MAX, LIMIT_PER_SECOND_MIN } from "../../operations/pipelines/limit.ts";
import type { PauseChange } from "../../operations/pipelines/pause.ts";
import { errorSchema, HttpError } from "../http-error.ts";
import { authorOf, by, mayReason, namedAuthor } from "../identity.ts";
import { type Answer, ok, type Route, route } from "../route.ts";
import { changedPipelinesSchema, destinationsSchema } from "../schemas/pipelines.ts";

const params = z.object({ name: z.string().min(1).max(500).describe("Name of a destination, as in the routes") });

const answers: Route["answers"] = {
  200: {
    description: "The pipelines of the destination, and whether each has changed",
    schema: changedPipelinesSchema,
  },
  404: { description: "No pipeline has a destination of this name", schema: errorSchema },
};

/** One switch for all pipelines of a destination. */
export function destinationRoutes(target: () => OperationTarget): Route[] {
  const database = () => target().database;
  const changed = async (name: string, changes: readonly PauseChange[] | null): Promise<Answer> => {
    if (changes !== null) return ok({ pipelines: changes });
    const names = (await knownDestinations(database())).map(({ destination }) => destination).join(", ") || "none yet";
    throw new HttpError(404, "NOT_FOUND", `No pipeline has the destination ${name}`, `Destinations here: ${names}.`);
  };
  return [
    route({
      method: "GET",
      path: "/api/v1/destinations",
      id: "listDestinations",
      summary: "Destinations of the pipelines, with pauses and rate limits that apply to all of them",
      access: "viewer",
      answers: { 200: { description: "All destinations", schema: destinationsSchema } },
      handle: async () => ok({ destinations: await knownDestinations(database()) }),
    }),
    route({
      method: "POST",
      path: "/api/v1/destinations/{name}/pause",
      id: "pauseDestination",
      summary: "Pause every pipeline of the destination, including future ones; events in flight are finished",
      access: "operator",
      params,
      body: z.strictObject({ by, reason: mayReason }),
      answers,
      handle: async ({ params: { name }, body: { by: who, reason }, identity }) =>
        changed(name, await pauseDestination(database(), name, namedAuthor(identity, who, reason))),
    }),
    route({
      method: "POST",
      path: "/api/v1/destinations/{name}/resume",
      id: "resumeDestination",
      summary: "Resume every pipeline of the destination",
      access: "operator",
      params,
      answers,
      handle: async ({ params: { name }, identity }) =>
        changed(name, await resumeDestination(database(), name, namedAuthor(identity, undefined))),
    }),
    route({
      method: "POST",
      path: "/api/v1/destinations/{name}/limit",
      id: "limitDestination",
      summary: "Rate limit per instance for each pipeline of the destination, in events per second; null removes it",
      access: "operator",
      params,
      body: z.strictObject({
        perSecond: z.number().min(LIMIT_PER_SECOND_MIN).max(LIMIT_PER_SECOND_MAX).nullable(),
        reason: mayReason,
      }),
      answers,
      handle: async ({ params: { name }, body: { perSecond, reason }, identity }) =>
        changed(name, await limitDestination(database(), name, perSecond, authorOf(identity, reason))),
    }),
  ];
}
