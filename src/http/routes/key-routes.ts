import { z } from "zod";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import { actOnKey, actOnKeys, BULK_KEYS_MAX, type KeyAction } from "../../operations/keys/key-actions.ts";
import { KEY_KINDS, listKeys } from "../../operations/keys/key-list.ts";
import { errorSchema, HttpError } from "../http-error.ts";
import { authorOf, mayReason, mustReason } from "../identity.ts";
import { ok, type Route, route } from "../route.ts";
import { keyBulkSchema, keyChangeSchema, keysSchema } from "../schemas/keys.ts";
import { pageQuery } from "./event-routes.ts";

const pipeline = z.string().min(1).max(500).describe("Name of the pipeline, as in GET /api/v1/pipelines");
const key = z.string().max(10_000);

const SUMMARIES: Readonly<Record<KeyAction, string>> = {
  retry: "Retry now the event that blocks a key",
  skip: "Skip the dead letter that blocks a key: the key continues, the dead letter stays",
  resume: "Retry now all failed events of a key, in order",
  discard: "Discard permanently the dead letter that blocks a key",
};

/** What operators do with a blocked key. */
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
        200: { description: "Ids of the changed events; empty when nothing blocks the key", schema: keyChangeSchema },
        404: { description: "No pipeline has this name", schema: errorSchema },
        409: { description: "The relay still retries the event that blocks the key", schema: errorSchema },
      },
      handle: async ({ body, identity }) => {
        const changed = await actOnKey(target(), action, {
          pipeline: body.pipeline,
          key: body.key,
          author: authorOf(identity, body.reason),
        });
        if (changed !== null) return ok({ changed });
        throw new HttpError(404, "NOT_FOUND", `No pipeline ${body.pipeline}`, "GET /api/v1/pipelines lists them.");
      },
    });
  return [listRoute(target), bulkRoute(target), act("retry"), act("skip"), act("resume"), act("discard")];
}

function bulkRoute(target: () => OperationTarget): Route {
  return route({
    method: "POST",
    path: "/api/v1/keys/bulk",
    id: "changeKeys",
    summary: "Apply one action to several keys, independently of each other",
    access: "operator",
    body: z.strictObject({
      action: z.enum(["retry", "skip", "resume", "discard"]),
      keys: z.array(z.strictObject({ pipeline, key })).min(1).max(BULK_KEYS_MAX),
      reason: mayReason.describe("Required to skip and to discard"),
    }),
    answers: {
      200: { description: "The changed events, and the keys that failed with the reason", schema: keyBulkSchema },
    },
    handle: async ({ body: { action, keys, reason }, identity }) =>
      ok(await actOnKeys(target(), action, keys, authorOf(identity, reason))),
  });
}

function listRoute(target: () => OperationTarget): Route {
  return route({
    method: "GET",
    path: "/api/v1/keys",
    id: "listKeys",
    summary: "Blocked keys with the event that blocks them, or the keys with the most events",
    access: "viewer",
    query: z.strictObject({
      ...pageQuery,
      kind: z
        .enum(KEY_KINDS)
        .optional()
        .describe(
          "parked: blocked by a dead letter. retrying: blocked by an event that is retried. hot: many events. Default: parked and retrying",
        ),
      pipeline: pipeline.optional(),
      q: z.string().max(1_000).optional().describe("Keys that contain this text, ignoring case"),
    }),
    answers: {
      200: { description: "One page, ordered by pipeline and key; hot keys by number of events", schema: keysSchema },
    },
    handle: async ({ query: { cursor, limit, ...choice } }) => ok(await listKeys(target(), choice, { limit, cursor })),
  });
}
