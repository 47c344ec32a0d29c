import { z } from "zod";
import { editDeadLetter } from "../../operations/dead-letters/edit-dead-letter.ts";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import { errorSchema, HttpError } from "../http-error.ts";
import { authorOf } from "../identity.ts";
import { mustReason } from "../named-author.ts";
import { ok, type Route, route } from "../route.ts";
import { keyChangeSchema } from "../schemas/keys.ts";
import { headersSchema } from "../schemas/shared-shapes.ts";
import { idParams, sourceQuery } from "./event-routes.ts";

const payload = z.object({ encoding: z.enum(["utf-8", "base64"]), text: z.string() });

/** Requires the right to read payloads, because the response reveals what the payload was. */
export function editRoute(target: () => OperationTarget): Route {
  return route({
    method: "POST",
    path: "/api/v1/dead-letters/{id}/edit",
    id: "editDeadLetter",
    summary: "Replace the payload of a dead letter, and replay it",
    access: "operator",
    params: idParams,
    body: z.strictObject({
      payload,
      headers: headersSchema.optional().describe("Unchanged when absent"),
      source: sourceQuery,
      reason: mustReason,
    }),
    answers: {
      200: { description: "The event that is replayed", schema: keyChangeSchema },
      404: { description: "No open dead letter has this id", schema: errorSchema },
      409: { description: "The dead letter was changed concurrently, or its row is gone", schema: errorSchema },
    },
    handle: async ({ body, identity, params: { id } }) => {
      if (!identity.maySeePayloads) {
        const way = "Use a token with +payloads in its role.";
        throw new HttpError(
          403,
          "PAYLOADS_HIDDEN",
          `${identity.name} must not see payloads, and so must not write them.`,
          way,
        );
      }
      const changed = await editDeadLetter(target(), {
        id,
        source: body.source,
        payload: bytesOf(body.payload),
        headers: body.headers,
        author: authorOf(identity, body.reason),
      });
      if (changed !== null) return ok({ changed: [changed] });
      throw new HttpError(
        404,
        "NOT_FOUND",
        `no open dead letter with id ${id}`,
        "GET /api/v1/dead-letters lists them.",
      );
    },
  });
}

function bytesOf({ encoding, text }: z.output<typeof payload>): Buffer {
  if (encoding === "utf-8") return Buffer.from(text, "utf8");
  if (/^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0) return Buffer.from(text, "base64");
  throw new HttpError(400, "BAD_REQUEST", "The payload is not valid base64, which its encoding announces.");
}
