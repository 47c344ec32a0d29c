import { z } from "zod";
import type { OperationTarget } from "../operations/event-source.ts";
import { parseEventFilter } from "../operations/filter-language.ts";
import { type FrozenPlan, listPlanItems, listPlans, showPlan } from "../operations/replay/frozen-plan.ts";
import { makePlan } from "../operations/replay/plan-replay.ts";
import { cancelPlan, pausePlan, startPlan } from "../operations/replay/plan-state.ts";
import { ITEM_STATES } from "../operations/replay/plan-states.ts";
import { pageQuery } from "./event-routes.ts";
import { errorSchema, HttpError } from "./http-error.ts";
import { authorOf } from "./identity.ts";
import { mayReason } from "./named-author.ts";
import { type Answer, ok, type Route, route } from "./route.ts";
import { planItemsSchema, planPageSchema, planSchema } from "./schemas/replays.ts";
import { requireText } from "./search-rights.ts";

const params = z.object({ id: z.string().min(1).max(100).describe("Of the plan") });

const planBody = z.strictObject({
  action: z.enum(["replay", "discard"]).default("replay"),
  subject: z.enum(["dead", "delivered"]).default("dead"),
  q: z.string().max(10_000).optional().describe("In the filter language: type:order.* since:2026-01-31"),
  ids: z.array(z.string().min(1).max(1_000)).min(1).max(10_000).optional().describe("Of the events"),
  all: z.boolean().default(false).describe("Every dead letter; must be said"),
  pipeline: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe("Where several pipelines read the source of delivered events"),
  ratePerSecond: z.number().positive().max(1_000_000).optional().describe("Events a second, at most"),
  reason: mayReason,
});

const answers: Route["answers"] = {
  200: { description: "The plan as it is now", schema: planSchema },
  404: { description: "There is no such plan", schema: errorSchema },
  409: { description: "Somebody else was faster, or the plan is stale", schema: errorSchema },
};

export function replayRoutes(target: () => OperationTarget): Route[] {
  return [...readRoutes(target), ...changeRoutes(target)];
}

function readRoutes(target: () => OperationTarget): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/replays",
      id: "listReplays",
      summary: "Replay plans, the last ones first",
      access: "viewer",
      query: z.strictObject(pageQuery),
      answers: { 200: { description: "A page", schema: planPageSchema } },
      handle: async ({ query }) => ok(await listPlans(target().database, query)),
    }),
    route({
      method: "GET",
      path: "/api/v1/replays/{id}",
      id: "showReplay",
      summary: "One replay plan and how far it is",
      access: "viewer",
      params,
      answers: { 200: answers[200]!, 404: answers[404]! },
      handle: async ({ params: { id } }) => found(id, await showPlan(target().database, id)),
    }),
    route({
      method: "GET",
      path: "/api/v1/replays/{id}/items",
      id: "listReplayItems",
      summary: "The events of a plan, in the order in which they are carried out",
      access: "viewer",
      params,
      query: z.strictObject({ ...pageQuery, state: z.enum(ITEM_STATES).optional() }),
      answers: { 200: { description: "A page", schema: planItemsSchema }, 404: answers[404]! },
      handle: async ({ params: { id }, query }) => {
        const plan = await showPlan(target().database, id);
        if (plan === null) throw notFound(id);
        return ok(await listPlanItems(target().database, plan.id, query));
      },
    }),
  ];
}

function changeRoutes(target: () => OperationTarget): Route[] {
  const change = (id: string, summary: string, act: typeof startPlan) =>
    route({
      method: "POST",
      path: `/api/v1/replays/{id}/${id.replace("Replay", "")}`,
      id,
      summary,
      access: "operator",
      params,
      body: z.strictObject({ reason: mayReason }),
      answers,
      handle: async ({ body, identity, params: { id: plan } }) =>
        found(plan, await act(target().database, plan, authorOf(identity, body.reason))),
    });
  return [
    route({
      method: "POST",
      path: "/api/v1/replays",
      id: "planReplay",
      summary: "Write down which events are meant, each as it is now, and change nothing yet",
      access: "operator",
      body: planBody,
      answers: { 201: { description: "The plan, to be looked at and then run", schema: planSchema } },
      handle: async ({ body: { reason: why, ...request }, identity }) => {
        requireText(target(), identity, parseEventFilter(request.q ?? "", new Date()).text);
        const plan = await makePlan(target(), { ...request, author: authorOf(identity, why) });
        return { status: 201, body: plan };
      },
    }),
    change(
      "runReplay",
      "Carry a plan out: one event, then ten, then the rest; it stops when the error returns",
      startPlan,
    ),
    change("pauseReplay", "Send nothing more; what is on its way goes on", pausePlan),
    change("cancelReplay", "End a plan for good; what was not sent stays as it is", cancelPlan),
  ];
}

function found(id: string, plan: FrozenPlan | null): Answer {
  if (plan === null) throw notFound(id);
  return ok(plan);
}

function notFound(id: string): HttpError {
  return new HttpError(404, "NOT_FOUND", `There is no replay plan ${id}`, "GET /api/v1/replays lists them.");
}
