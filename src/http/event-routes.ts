import { z } from "zod";
import { EVENT_STATES } from "../operations/event-filter.ts";
import { LIST_ROWS_MAX, listEvents } from "../operations/event-list.ts";
import { showEvent } from "../operations/event-show.ts";
import { eventSources, type OperationTarget } from "../operations/event-source.ts";
import { errorSchema, HttpError } from "./http-error.ts";
import { ok, type Route, route } from "./route.ts";
import { eventPageSchema, shownEventSchema, sourcesSchema } from "./schemas/events.ts";

const time = z.iso.datetime({ offset: true }).transform((text) => new Date(text));

/** Of every list. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(LIST_ROWS_MAX).default(50),
  cursor: z.string().max(10_000).optional().describe("As the page before said it"),
};

export const sourceQuery = z.string().max(200).optional().describe("schema.table");
export const typeQuery = z.string().max(1_000).optional().describe("* stands for any run of characters");
export const keyQuery = z.string().max(10_000).optional();

export const idParams = z.object({ id: z.string().min(1).max(1_000) });

export function eventRoutes(target: () => OperationTarget): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/sources",
      id: "listSources",
      summary: "The tables of events, and those that cannot be read at present",
      access: "viewer",
      answers: { 200: { description: "All of them", schema: sourcesSchema } },
      handle: async () => {
        const { usable, broken } = await eventSources(target());
        return ok({ sources: usable.map(({ name, pipelines }) => ({ source: name, pipelines })), broken });
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/events",
      id: "listEvents",
      summary: "Events of all sources, the newest first",
      access: "viewer",
      query: z.strictObject({
        ...pageQuery,
        source: sourceQuery,
        type: typeQuery,
        key: keyQuery,
        correlationId: z.string().max(1_000).optional(),
        id: z.string().max(1_000).optional(),
        state: z.enum(EVENT_STATES).optional(),
        since: time.optional(),
        until: time.optional(),
      }),
      answers: { 200: { description: "A page", schema: eventPageSchema } },
      handle: async ({ query: { limit, cursor, ...filter } }) =>
        ok(await listEvents(target(), filter, { limit, cursor })),
    }),
    route({
      method: "GET",
      path: "/api/v1/events/{id}",
      id: "showEvent",
      summary: "One event with payload, headers, state and every failed attempt",
      access: "viewer",
      params: idParams,
      query: z.strictObject({ source: sourceQuery }),
      answers: {
        200: { description: "The event", schema: shownEventSchema },
        404: { description: "No source has it", schema: errorSchema },
        409: { description: "Several sources have this id: name one", schema: errorSchema },
      },
      handle: async ({ params: { id }, query: { source } }) => {
        const [event, ...others] = await showEvent(target(), id, source);
        if (event === undefined) throw new HttpError(404, "NOT_FOUND", `There is no event ${id}`);
        if (others.length === 0) return ok(event);
        const sources = [event, ...others].map((it) => it.source).join(", ");
        throw new HttpError(409, "AMBIGUOUS", `${id} is in several sources: ${sources}`, "Add ?source=schema.table");
      },
    }),
  ];
}
