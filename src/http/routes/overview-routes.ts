import { systemClock } from "../../core/clock.ts";
import type { Overview, Series } from "../overview.ts";
import { eventStream, ok, type Route, route, type ServerSentEvent } from "../route.ts";
import { overviewSchema, seriesSchema } from "../schemas/overview.ts";

/** What the overview shows. Each answer is quick, also while the database is down. */
export interface OverviewFaces {
  overview(): Promise<Overview>;
  series(): Promise<Series>;
}

const LIVE_EVERY_MS = 2_000;

/** The routes of the overview and its charts. */
export function overviewRoutes(faces: OverviewFaces): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/overview",
      id: "overview",
      summary: "State of the relay: rates, backlog, destinations, instances, problems",
      access: "viewer",
      answers: {
        200: { description: "Available while the database is down: then `problems` says so", schema: overviewSchema },
      },
      handle: async () => ok(await faces.overview()),
    }),
    route({
      method: "GET",
      path: "/api/v1/series",
      id: "series",
      summary: "Rates and backlog of the last hour, for charts",
      access: "viewer",
      answers: { 200: { description: "The points since this process started", schema: seriesSchema } },
      handle: async () => ok(await faces.series()),
    }),
    route({
      method: "GET",
      path: "/api/v1/live",
      id: "watchOverview",
      summary: "Stream of overviews, as server-sent events",
      access: "viewer",
      answers: {
        200: {
          description: "An event `overview` every two seconds, until the client disconnects",
          schema: null,
          contentType: "text/event-stream",
        },
      },
      handle: async ({ signal }) => eventStream(overviews(faces, signal)),
    }),
  ];
}

async function* overviews(faces: OverviewFaces, signal: AbortSignal): AsyncGenerator<ServerSentEvent> {
  while (!signal.aborted) {
    yield { event: "overview", data: await faces.overview() };
    await systemClock.sleep(LIVE_EVERY_MS, signal);
  }
}
