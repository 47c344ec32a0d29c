import { z } from "zod";
import { systemClock } from "../../core/clock.ts";
import { isRelayError, reasonOf } from "../../core/errors.ts";
import { showCorrelation } from "../../operations/events/correlation.ts";
import { EVENT_STATES, type EventFilter } from "../../operations/events/event-filter.ts";
import { alsoInPayloads, LIST_ROWS_MAX, listEvents } from "../../operations/events/event-list.ts";
import { eventPayload, notePayloadRead, type ShownEvent, showEvent } from "../../operations/events/event-show.ts";
import { eventSources, type OperationTarget } from "../../operations/events/event-source.ts";
import { tailEvents } from "../../operations/events/event-tail.ts";
import { bothFilters, parseEventFilter } from "../../operations/filter/filter-language.ts";
import { FILTER_LENGTH_MAX } from "../../operations/filter/filter-words.ts";
import { errorSchema, HttpError } from "../http-error.ts";
import { authorOf, hasRole } from "../identity.ts";
import { eventStream, ok, type Route, route, type ServerSentEvent } from "../route.ts";
import { correlationSchema, eventPageSchema, shownEventSchema, sourcesSchema } from "../schemas/events.ts";
import { maySearchPayloads, requireSearchable } from "../search-rights.ts";

const time = z.iso.datetime({ offset: true }).transform((text) => new Date(text));

/** Query parameters of every list. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(LIST_ROWS_MAX).default(50),
  cursor: z.string().max(10_000).optional().describe("The cursor of the previous page"),
};

export const sourceQuery = z.string().max(200).optional().describe("schema.table");
export const typeQuery = z.string().max(1_000).optional().describe("`*` matches any characters");
export const keyQuery = z.string().max(10_000).optional();

export const filterQuery = z
  .string()
  .max(FILTER_LENGTH_MAX)
  .default("")
  .describe(
    "Filter language: type:order.* key:42 state:dead age:<1h. A bare word matches an id, a key, a correlation id or a part of a key",
  );

export const idParams = z.object({ id: z.string().min(1).max(1_000) });

export function eventRoutes(target: () => OperationTarget): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/sources",
      id: "listSources",
      summary: "Tables of events, and those that cannot be read",
      access: "viewer",
      answers: { 200: { description: "All sources", schema: sourcesSchema } },
      handle: async () => {
        const { usable, broken } = await eventSources(target());
        return ok({ sources: usable.map(({ name, pipelines }) => ({ source: name, pipelines })), broken });
      },
    }),
    listRoute(target),
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
        404: { description: "No source has this event", schema: errorSchema },
        409: { description: "Several sources have this id: name the source", schema: errorSchema },
      },
      handle: async ({ params: { id }, query: { source }, identity: { maySeePayloads } }) =>
        ok(requireOne(id, await showEvent(target(), id, { source, maySeePayloads }))),
    }),
    correlationRoute(target),
    payloadRoute(target),
    tailRoute(target),
  ];
}

function listRoute(target: () => OperationTarget): Route {
  return route({
    method: "GET",
    path: "/api/v1/events",
    id: "listEvents",
    summary: "Events of all sources, newest first",
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
      200: { description: "One page", schema: eventPageSchema },
      404: { description: "No error group has this prefix, or several have", schema: errorSchema },
      403: { description: "text: and payload. require the right to see payloads", schema: errorSchema },
    },
    handle: async ({ identity, query: { limit, cursor, q, id, ...others } }) => {
      const single: EventFilter = { ...others, ids: id === undefined ? undefined : [id] };
      const filter = bothFilters(parseEventFilter(q, new Date()), single);
      requireSearchable(target(), identity, filter);
      const page = await listEvents(target(), filter, { limit, cursor });
      const also = maySearchPayloads(target(), identity) ? alsoInPayloads(filter, page) : null;
      return ok({ ...page, also });
    },
  });
}

function correlationRoute(target: () => OperationTarget): Route {
  return route({
    method: "GET",
    path: "/api/v1/correlations/{id}",
    id: "showCorrelation",
    summary: "History of all events of a correlation id, across sources and destinations",
    access: "viewer",
    params: idParams,
    answers: { 200: { description: "Up to 100 events; empty when no event has the id", schema: correlationSchema } },
    handle: async ({ params: { id } }) => ok(await showCorrelation(target(), id)),
  });
}

function requireOne(id: string, found: readonly ShownEvent[]): ShownEvent {
  const [event, ...others] = found;
  if (event === undefined) throw new HttpError(404, "NOT_FOUND", `No event with id ${id}`);
  if (others.length === 0) return event;
  const sources = found.map((it) => it.source).join(", ");
  throw new HttpError(409, "AMBIGUOUS", `Several sources have an event ${id}: ${sources}`, "Add ?source=schema.table");
}

/**
 * Returns the payload byte for byte, whatever its size. It includes what REDACT hides: then only an administrator may
 * read it.
 */
function payloadRoute(target: () => OperationTarget): Route {
  const contentType = "application/octet-stream";
  return route({
    method: "GET",
    path: "/api/v1/events/{id}/payload",
    id: "readPayload",
    summary: "The payload as it is stored; recorded in the audit",
    access: "viewer",
    params: idParams,
    query: z.strictObject({ source: sourceQuery }),
    answers: {
      200: { description: "The bytes of the payload", schema: null, contentType },
      403: {
        description: "Requires the right to see payloads; where REDACT hides something, the role admin",
        schema: errorSchema,
      },
      404: { description: "No source has the event", schema: errorSchema },
      409: { description: "Several sources have this id: name the source", schema: errorSchema },
    },
    handle: async ({ params: { id }, query: { source }, identity }) => {
      const where = target();
      if (!identity.maySeePayloads) {
        const fix = "Use a token with +payloads in its role.";
        throw new HttpError(403, "PAYLOADS_HIDDEN", `${identity.name} must not see payloads`, fix);
      }
      if (where.shown?.any && !hasRole(identity, "admin")) {
        const fix = "GET /api/v1/events/{id} shows the redacted payload.";
        throw new HttpError(
          403,
          "PAYLOADS_HIDDEN",
          "REDACT hides parts of payloads: only an admin can read them in full",
          fix,
        );
      }
      const event = requireOne(id, await showEvent(where, id, { source, maySeePayloads: false }));
      if (event.isGone)
        throw new HttpError(404, "NOT_FOUND", `The row of event ${id} is gone, and its payload with it`);
      await notePayloadRead(where.database, authorOf(identity), event);
      const name = id.replaceAll(/[^\w.-]/g, "_").slice(0, 100);
      const headers = { "content-disposition": `attachment; filename="${name}.bin"` };
      return { status: 200, body: eventPayload(where, id, event.source), contentType, headers };
    },
  });
}

/** Each tail queries the database every second, and the API has few connections. */
const TAILS_MAX = 20;

/** Streams new and changed events until the client disconnects. */
function tailRoute(target: () => OperationTarget): Route {
  let open = 0;
  const contentType = "text/event-stream";
  return route({
    method: "GET",
    path: "/api/v1/events/tail",
    id: "tailEvents",
    summary:
      "Server-sent events: new when an event was written, changed when its state changes, missed when events were skipped",
    access: "viewer",
    query: z.strictObject({ q: z.string().max(FILTER_LENGTH_MAX).default("").describe("As for GET /api/v1/events") }),
    answers: {
      200: { description: "Streams until the client disconnects", schema: null, contentType },
      403: { description: "text: and payload. require the right to see payloads", schema: errorSchema },
      429: { description: "Too many tails are open", schema: errorSchema },
    },
    handle: async ({ identity, query: { q }, signal }) => {
      const filter = parseEventFilter(q, new Date());
      requireSearchable(target(), identity, filter);
      if (open >= TAILS_MAX) {
        const fix = "Close another tail, or retry later.";
        throw new HttpError(429, "TOO_MANY_TAILS", `${TAILS_MAX} tails are open, the maximum`, fix);
      }
      open += 1;
      let isOpen = true;
      const close = () => {
        if (isOpen) open -= 1;
        isOpen = false;
      };
      // An abort before the first read ends the stream without an error.
      signal.addEventListener("abort", close, { once: true });
      try {
        // An invalid filter or a failing database must give an error response, not an empty stream.
        await listEvents(target(), filter, { limit: 1, glanceRows: 1 });
        return eventStream(tailed(target(), filter, signal, close));
      } catch (error) {
        close();
        throw error;
      }
    },
  });
}

async function* tailed(
  target: OperationTarget,
  filter: EventFilter,
  signal: AbortSignal,
  close: () => void,
): AsyncGenerator<ServerSentEvent> {
  let hasMissed = false;
  const missed = () => {
    hasMissed = true;
  };
  try {
    for await (const { event, what } of tailEvents(target, filter, { clock: systemClock, signal, missed })) {
      if (hasMissed) yield { event: "missed", data: {} };
      hasMissed = false;
      yield { event: what, data: event };
    }
  } catch (error) {
    // The client reconnects by itself, and the status of that response carries the error.
    if (!isRelayError(error)) throw error;
    yield { event: "problem", data: { code: error.code, detail: reasonOf(error) } };
  } finally {
    close();
  }
}
