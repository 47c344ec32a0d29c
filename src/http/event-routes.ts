import { z } from "zod";
import { EVENT_STATES, type EventFilter } from "../operations/event-filter.ts";
import { LIST_ROWS_MAX, listEvents } from "../operations/event-list.ts";
import { eventPayload, notePayloadRead, type ShownEvent, showEvent } from "../operations/event-show.ts";
import { eventSources, type OperationTarget } from "../operations/event-source.ts";
import { bothFilters, parseEventFilter } from "../operations/filter-language.ts";
import { FILTER_LENGTH_MAX } from "../operations/filter-words.ts";
import { tailRoute } from "./event-tail-route.ts";
import { errorSchema, HttpError } from "./http-error.ts";
import { authorOf, hasRole } from "./identity.ts";
import { ok, type Route, route } from "./route.ts";
import { eventPageSchema, shownEventSchema, sourcesSchema } from "./schemas/events.ts";
import { requireText } from "./search-rights.ts";

const time = z.iso.datetime({ offset: true }).transform((text) => new Date(text));

/** Of every list. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(LIST_ROWS_MAX).default(50),
  cursor: z.string().max(10_000).optional().describe("As the page before said it"),
};

export const sourceQuery = z.string().max(200).optional().describe("schema.table");
export const typeQuery = z.string().max(1_000).optional().describe("* stands for any run of characters");
export const keyQuery = z.string().max(10_000).optional();

export const filterQuery = z
  .string()
  .max(FILTER_LENGTH_MAX)
  .default("")
  .describe(
    "In the filter language: type:order.* key:42 state:dead age:<1h; a bare word is an id, key or correlation id",
  );

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
        q: filterQuery,
        source: sourceQuery,
        type: typeQuery,
        key: keyQuery,
        correlationId: z.string().max(1_000).optional(),
        id: z.string().max(1_000).optional(),
        state: z.enum(EVENT_STATES).optional(),
        since: time.optional(),
        until: time.optional(),
      }),
      answers: {
        200: { description: "A page", schema: eventPageSchema },
        403: { description: "text: is for those who may see payloads", schema: errorSchema },
      },
      handle: async ({ identity, query: { limit, cursor, q, id, ...others } }) => {
        const single: EventFilter = { ...others, ids: id === undefined ? undefined : [id] };
        const filter = bothFilters(parseEventFilter(q, new Date()), single);
        requireText(target(), identity, filter.text);
        return ok(await listEvents(target(), filter, { limit, cursor }));
      },
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
      handle: async ({ params: { id }, query: { source }, identity: { maySeePayloads } }) =>
        ok(requireOne(id, await showEvent(target(), id, { source, maySeePayloads }))),
    }),
    payloadRoute(target),
    tailRoute(target),
  ];
}

function requireOne(id: string, found: readonly ShownEvent[]): ShownEvent {
  const [event, ...others] = found;
  if (event === undefined) throw new HttpError(404, "NOT_FOUND", `There is no event ${id}`);
  if (others.length === 0) return event;
  const sources = found.map((it) => it.source).join(", ");
  throw new HttpError(409, "AMBIGUOUS", `${id} is in several sources: ${sources}`, "Add ?source=schema.table");
}

/** Byte for byte, however large. What REDACT hides stands in it too: then only an administrator may have it. */
function payloadRoute(target: () => OperationTarget): Route {
  const contentType = "application/octet-stream";
  return route({
    method: "GET",
    path: "/api/v1/events/{id}/payload",
    id: "readPayload",
    summary: "The payload as it is stored; noted in the audit",
    access: "viewer",
    params: idParams,
    query: z.strictObject({ source: sourceQuery }),
    answers: {
      200: { description: "Its bytes", schema: null, contentType },
      403: {
        description: "For those who may see payloads; where REDACT hides something, for admins",
        schema: errorSchema,
      },
      404: { description: "No source has the event", schema: errorSchema },
      409: { description: "Several sources have this id: name one", schema: errorSchema },
    },
    handle: async ({ params: { id }, query: { source }, identity }) => {
      const where = target();
      if (!identity.maySeePayloads) {
        const fix = "Ask for a token whose role has +payloads behind it.";
        throw new HttpError(403, "PAYLOADS_HIDDEN", `${identity.name} may not see payloads`, fix);
      }
      if (where.shown?.any && !hasRole(identity, "admin")) {
        const fix = "GET /api/v1/events/{id} shows the rest of it.";
        throw new HttpError(
          403,
          "PAYLOADS_HIDDEN",
          "REDACT hides a part of payloads: only an admin may have all of it",
          fix,
        );
      }
      const event = requireOne(id, await showEvent(where, id, { source, maySeePayloads: false }));
      if (event.isGone) throw new HttpError(404, "NOT_FOUND", `The row of ${id} is gone, and its payload with it`);
      await notePayloadRead(where.database, authorOf(identity), event);
      const name = id.replaceAll(/[^\w.-]/g, "_").slice(0, 100);
      const headers = { "content-disposition": `attachment; filename="${name}.bin"` };
      return { status: 200, body: eventPayload(where, id, event.source), contentType, headers };
    },
  });
}
