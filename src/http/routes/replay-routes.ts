import { z } from "zod";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import { parseEventFilter } from "../../operations/filter/filter-language.ts";
import {
  type FrozenPlan,
  ITEM_STATES,
  listPlanItems,
  listPlans,
  PLAN_STATES,
  showPlan,
} from "../../operations/replay/frozen-plan.ts";
import { previewPatch } from "../../operations/replay/patch-items.ts";
import { makePlan } from "../../operations/replay/plan-replay.ts";
import { cancelPlan, pausePlan, startPlan } from "../../operations/replay/plan-state.ts";
import { errorSchema, HttpError } from "../http-error.ts";
import { authorOf, type Identity, mayReason } from "../identity.ts";
import { type Answer, ok, type Route, route } from "../route.ts";
import { patchPreviewSchema, planItemsSchema, planPageSchema, planSchema } from "../schemas/replays.ts";
import { requireSearchable } from "../search-rights.ts";
import { pageQuery } from "./event-routes.ts";

const params = z.object({ id: z.string().min(1).max(100).describe("Id of the plan") });

const planBody = z.strictObject({
  action: z.enum(["replay", "discard"]).default("replay"),
  subject: z.enum(["dead", "delivered"]).default("dead"),
  q: z.string().max(10_000).optional().describe("Filter language: type:order.* since:2026-01-31"),
  ids: z.array(z.string().min(1).max(1_000)).min(1).max(10_000).optional().describe("Ids of events"),
  all: z
    .boolean()
    .default(false)
    .describe("Selects every open dead letter. Required where neither ids nor a filter is given"),
  pipeline: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe("Required for delivered events where several pipelines read their source"),
  ratePerSecond: z.number().positive().max(1_000_000).optional().describe("Rate limit in events per second"),
  patch: z
    .string()
    .min(2)
    .max(65_536)
    .optional()
    .describe(
      'Dead letters only: a JSON merge patch (RFC 7396) for each payload, such as {"customer": {"id": "4711"}}',
    ),
  reason: mayReason,
});

const answers: Route["answers"] = {
  200: { description: "The plan after the change", schema: planSchema },
  404: { description: "No plan has this id", schema: errorSchema },
  409: { description: "The plan was changed concurrently, or it is stale", schema: errorSchema },
};

export function replayRoutes(target: () => OperationTarget): Route[] {
  return [...readRoutes(target), previewRoute(target), ...changeRoutes(target)];
}

function readRoutes(target: () => OperationTarget): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/replays",
      id: "listReplays",
      summary: "Replay plans, newest first",
      access: "viewer",
      query: z.strictObject({
        ...pageQuery,
        state: z.enum(PLAN_STATES).optional(),
        action: z.enum(["replay", "discard"]).optional(),
        q: z
          .string()
          .max(1_000)
          .regex(/^[^\0]*$/)
          .optional()
          .describe("Text in the id, filter, reason or author of a plan, ignoring case"),
      }),
      answers: { 200: { description: "One page", schema: planPageSchema } },
      handle: async ({ identity, query: { q: contains, ...query } }) => {
        const { cursor, plans } = await listPlans(target().database, { ...query, contains });
        return ok({ plans: plans.map((plan) => seenBy(target(), identity, plan)), cursor });
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/replays/{id}",
      id: "showReplay",
      summary: "One replay plan with its progress",
      access: "viewer",
      params,
      answers: { 200: answers[200]!, 404: answers[404]! },
      handle: async ({ identity, params: { id } }) =>
        found(id, target(), identity, await showPlan(target().database, id)),
    }),
    route({
      method: "GET",
      path: "/api/v1/replays/{id}/items",
      id: "listReplayItems",
      summary: "Events of a plan, in the order of their replay",
      access: "viewer",
      params,
      query: z.strictObject({ ...pageQuery, state: z.enum(ITEM_STATES).optional() }),
      answers: { 200: { description: "One page", schema: planItemsSchema }, 404: answers[404]! },
      handle: async ({ params: { id }, query }) => {
        const plan = await showPlan(target().database, id);
        if (plan === null) throw notFound(id);
        return ok(await listPlanItems(target().database, plan.id, query));
      },
    }),
  ];
}

function changeRoutes(target: () => OperationTarget): Route[] {
  const change = (id: string, summary: string, act: typeof pausePlan) =>
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
        found(plan, target(), identity, await act(target().database, plan, authorOf(identity, body.reason))),
    });
  return [
    route({
      method: "POST",
      path: "/api/v1/replays",
      id: "planReplay",
      summary: "Create a plan: freeze the list of matching events without changing them",
      access: "operator",
      body: planBody,
      answers: {
        201: { description: "The plan. Check it, then run it", schema: planSchema },
        404: { description: "No events match: no plan was created", schema: errorSchema },
      },
      handle: async ({ body: { reason: why, ...request }, identity }) => {
        if (request.patch !== undefined) requirePayloads(identity);
        requireSearchable(target(), identity, parseEventFilter(request.q ?? "", new Date()));
        const plan = await makePlan(target(), { ...request, author: authorOf(identity, why) });
        return { status: 201, body: plan };
      },
    }),
    route({
      method: "POST",
      path: "/api/v1/replays/{id}/run",
      id: "runReplay",
      summary:
        "Run a plan: one event of each stratum, then ten of each, then the rest. It stops when an event fails again",
      access: "operator",
      params,
      body: z.strictObject({
        reason: mayReason,
        skipFailed: z.boolean().default(false).describe("Exclude the strata that failed, and continue with the others"),
      }),
      answers,
      handle: async ({ body: { reason, skipFailed }, identity, params: { id } }) => {
        const plan = await startPlan(target().database, id, authorOf(identity, reason), { skipFailed });
        return found(id, target(), identity, plan);
      },
    }),
    change("pauseReplay", "Pause a plan; events that are already sent are finished", pausePlan),
    change("cancelReplay", "Cancel a plan permanently; events that were not sent stay as they are", cancelPlan),
  ];
}

function found(id: string, target: OperationTarget, identity: Identity, plan: FrozenPlan | null): Answer {
  if (plan === null) throw notFound(id);
  return ok(seenBy(target, identity, plan));
}

/** A patch may contain the same data as a payload. */
function seenBy({ shown }: OperationTarget, { maySeePayloads }: Identity, plan: FrozenPlan): FrozenPlan {
  if (plan.patch === null || !maySeePayloads) return { ...plan, patch: null };
  const payload = { encoding: "utf-8", text: plan.patch, bytes: plan.patch.length, isTruncated: false } as const;
  return { ...plan, patch: shown?.payload(payload).text ?? plan.patch };
}

function requirePayloads({ maySeePayloads, name }: Identity): void {
  if (maySeePayloads) return;
  const way = "Use a token with +payloads in its role.";
  throw new HttpError(403, "PAYLOADS_HIDDEN", `${name} must not see payloads, and so must not change them.`, way);
}

function previewRoute(target: () => OperationTarget): Route {
  return route({
    method: "GET",
    path: "/api/v1/replays/{id}/preview",
    id: "previewPatch",
    summary: "Preview of a plan's patch on some of its events, without changing anything",
    access: "viewer",
    params,
    answers: {
      200: { description: "Examples; empty for a plan without a patch", schema: patchPreviewSchema },
      403: { description: "Requires the right to see payloads", schema: errorSchema },
      404: answers[404]!,
    },
    handle: async ({ identity, params: { id } }) => {
      requirePayloads(identity);
      const plan = await showPlan(target().database, id);
      if (plan === null) throw notFound(id);
      return ok({ examples: await previewPatch(target(), plan) });
    },
  });
}

function notFound(id: string): HttpError {
  return new HttpError(404, "NOT_FOUND", `No replay plan ${id}`, "GET /api/v1/replays lists them.");
}
