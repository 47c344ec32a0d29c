import { z } from "zod";
import { listAudit } from "../../operations/audit/audit.ts";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import { ok, type Route, route } from "../route.ts";
import { auditSchema } from "../schemas/service.ts";
import { pageQuery } from "./event-routes.ts";

const TIME_FORM = "At or after this time: 2026-01-31, 2026-01-31T12:00 in UTC, or 15m, 2h, 1d for ago";

/** The route that lists the audit. */
export function auditRoute(target: () => OperationTarget): Route {
  return route({
    method: "GET",
    path: "/api/v1/audit",
    id: "listAudit",
    summary: "Audit log, newest first. Entries for single events of a plan appear only with an eventId or an action",
    access: "viewer",
    query: z.strictObject({
      ...pageQuery,
      actor: z.string().max(200).optional(),
      action: z.string().max(100).optional(),
      target: z
        .string()
        .max(1_000)
        .optional()
        .describe("The target of the action: a pipeline, a source, a plan or a key"),
      eventId: z.string().max(1_000).optional(),
      since: z.string().max(100).optional().describe(TIME_FORM),
      until: z.string().max(100).optional().describe("Before this time, in the same format"),
    }),
    answers: { 200: { description: "One page", schema: auditSchema } },
    handle: async ({ query: { limit, cursor, ...filter } }) =>
      ok(await listAudit(target().database, filter, { limit, cursor })),
  });
}
