import { z } from "zod";
import { errorSchema, HttpError } from "../http-error.ts";
import { ok, type Route, route } from "../route.ts";
import type { OverviewFaces } from "./overview-routes.ts";

/** The names are the Open Outbox Relay's. */
const statsSchema = z
  .object({
    pending_count: z.int().describe("Events before their first failure"),
    retrying_count: z.int().describe("Events that failed and wait for their next attempt"),
    oldest_age_sec: z.int().describe("Age of the oldest waiting event, in seconds"),
  })
  .meta({ id: "Stats" });

/** The figures of the Open Outbox Relay, for the dashboards and scripts that read them there. */
export function statsRoute(faces: Pick<OverviewFaces, "overview">): Route {
  return route({
    method: "GET",
    path: "/stats",
    id: "stats",
    summary: "The backlog as the Open Outbox Relay shows it; health and metrics say more",
    access: "open",
    answers: {
      200: { description: "The backlog of this moment", schema: statsSchema },
      503: { description: "The backlog could not be counted", schema: errorSchema },
    },
    handle: async () => {
      const { oldestAgeMs, pending, retrying } = await faces.overview();
      if (pending === null) throw new HttpError(503, "NOT_COUNTED", "The backlog could not be counted yet");
      return ok({
        pending_count: Math.max(0, pending - retrying),
        retrying_count: retrying,
        oldest_age_sec: Math.floor((oldestAgeMs ?? 0) / 1_000),
      });
    },
  });
}
