import { z } from "zod";
import type { OperationTarget } from "../operations/event-source.ts";
import { actOnKey, type KeyAction } from "../operations/keys/key-actions.ts";
import { KEY_KINDS, listKeys } from "../operations/keys/key-list.ts";
import { pageQuery } from "./event-routes.ts";
import { errorSchema, HttpError } from "./http-error.ts";
import { authorOf } from "./identity.ts";
import { mayReason, mustReason } from "./named-author.ts";
import { ok, type Route, route } from "./route.ts";
import { keyChangeSchema, keysSchema } from "./schemas/keys.ts";

const pipeline = z.string().min(1).max(500).describe("As GET /api/v1/pipelines names it");
const key = z.string().max(10_000);

const SUMMARIES: Readonly<Record<KeyAction, string>> = {
  retry: "Try the event again now that a key waits for",
  skip: "Let a key go on without its dead head, which stays a dead letter",
  resume: "Try everything of a key again now that failed, in order",
  discard: "Give up for good the dead head that a key waits for",
};

/** What people do with a key that stands still. */
export function keyRoutes(target: () => OperationTarget): Route[] {
  const act = (action: KeyAction) =>
    route({
      method: "POST",
      path: `/api/v1/keys/${action}`,
      id: `${action}Key`,
      summary: SUMMARIES[action],
      access: "operator",
      body: z.strictObject({
        pipeline,
        key,
        reason: action === "skip" || action === "discard" ? mustReason : mayReason,
      }),
      answers: {
        200: { description: "What was changed; nothing, where the key waits for nothing", schema: keyChangeSchema },
        404: { description: "There is no such pipeline", schema: errorSchema },
        409: { description: "Its head is being tried again by itself", schema: errorSchema },
      },
      handle: async ({ body, identity }) => {
        const changed = await actOnKey(target(), action, {
          pipeline: body.pipeline,
          key: body.key,
          author: authorOf(identity, body.reason),
        });
        if (changed !== null) return ok({ changed });
        throw new HttpError(
          404,
          "NOT_FOUND",
          `There is no pipeline ${body.pipeline}`,
          "GET /api/v1/pipelines lists them.",
        );
      },
    });
  return [listRoute(target), act("retry"), act("skip"), act("resume"), act("discard")];
}

function listRoute(target: () => OperationTarget): Route {
  return route({
    method: "GET",
    path: "/api/v1/keys",
    id: "listKeys",
    summary: "Keys that stand still, with the event that everything of them waits for; or those with the most events",
    access: "viewer",
    query: z.strictObject({
      ...pageQuery,
      kind: z
        .enum(KEY_KINDS)
        .optional()
        .describe("parked waits for a person, retrying for its head, hot is merely busy; without: the first two"),
      pipeline: pipeline.optional(),
    }),
    answers: { 200: { description: "A page, by pipeline and key; hot ones by their number", schema: keysSchema } },
    handle: async ({ query: { cursor, limit, ...choice } }) => ok(await listKeys(target(), choice, { limit, cursor })),
  });
}
