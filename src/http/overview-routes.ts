import { systemClock } from "../core/clock.ts";
import type { Overview, Series } from "./overview.ts";
import { eventStream, ok, type Route, route, type ServerSentEvent } from "./route.ts";
import { overviewSchema, seriesSchema } from "./schemas/overview.ts";

/** What says how the relay does, to people. Each is quick, and answers also while the database does not. */
export interface OverviewFaces {
  overview(): Promise<Overview>;
  series(): Promise<Series>;
}

const LIVE_EVERY_MS = 2_000;

export function overviewRoutes(faces: OverviewFaces): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/overview",
      id: "overview",
      summary: "How the relay does: rates, what waits, destinations, instances, problems",
      access: "viewer",
      answers: {
        200: { description: "Also while the database is down: then its problems say so", schema: overviewSchema },
      },
      handle: async () => ok(await faces.overview()),
    }),
    route({
      method: "GET",
      path: "/api/v1/series",
      id: "series",
      summary: "The same over the last hour, for charts",
      access: "viewer",
      answers: { 200: { description: "Since this process has started", schema: seriesSchema } },
      handle: async () => ok(await faces.series()),
    }),
    route({
      method: "GET",
      path: "/api/v1/live",
      id: "watchOverview",
      summary: "The overview again and again, as server-sent events",
      access: "viewer",
      answers: {
        200: {
          description: "An event `overview` every two seconds, until the caller goes",
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
