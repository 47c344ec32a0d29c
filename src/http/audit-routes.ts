import { z } from "zod";
import { listAudit } from "../operations/audit.ts";
import type { OperationTarget } from "../operations/event-source.ts";
import { pageQuery } from "./event-routes.ts";
import { ok, type Route, route } from "./route.ts";
import { auditSchema } from "./schemas/service.ts";

export function auditRoute(target: () => OperationTarget): Route {
  return route({
    method: "GET",
    path: "/api/v1/audit",
    id: "listAudit",
    summary:
      "Who did what and why, the last actions first; what plans did to single events only with an eventId or an action",
    access: "viewer",
    query: z.strictObject({
      ...pageQuery,
      actor: z.string().max(200).optional(),
      action: z.string().max(100).optional(),
      target: z.string().max(1_000).optional().describe("A pipeline, a source, a plan or a key"),
      eventId: z.string().max(1_000).optional(),
    }),
    answers: { 200: { description: "A page", schema: auditSchema } },
    handle: async ({ query: { limit, cursor, ...filter } }) =>
      ok(await listAudit(target().database, filter, { limit, cursor })),
  });
}
