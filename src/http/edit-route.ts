import { z } from "zod";
import { editDeadLetter } from "../operations/edit-dead-letter.ts";
import type { OperationTarget } from "../operations/event-source.ts";
import { idParams, sourceQuery } from "./event-routes.ts";
import { errorSchema, HttpError } from "./http-error.ts";
import { authorOf } from "./identity.ts";
import { mustReason } from "./named-author.ts";
import { ok, type Route, route } from "./route.ts";
import { keyChangeSchema } from "./schemas/keys.ts";
import { headersSchema } from "./schemas/shared-shapes.ts";

const payload = z.object({ encoding: z.enum(["utf-8", "base64"]), text: z.string() });

/** Whoever writes a payload must be allowed to read it: it says what was there. */
export function editRoute(target: () => OperationTarget): Route {
  return route({
    method: "POST",
    path: "/api/v1/dead-letters/{id}/edit",
    id: "editDeadLetter",
    summary: "Put another payload in the place of a dead letter's, and try it again",
    access: "operator",
    params: idParams,
    body: z.strictObject({
      payload,
      headers: headersSchema.optional().describe("Those of before where they are left out"),
      source: sourceQuery,
      reason: mustReason,
    }),
    answers: {
      200: { description: "The event that is tried again", schema: keyChangeSchema },
      404: { description: "No such dead letter waits", schema: errorSchema },
      409: { description: "Somebody else was faster, or its row is gone", schema: errorSchema },
    },
    handle: async ({ body, identity, params: { id } }) => {
      if (!identity.maySeePayloads) {
        const way = "Ask for a token that may see payloads.";
        throw new HttpError(403, "PAYLOADS_HIDDEN", `${identity.name} may not see payloads, nor write them.`, way);
      }
      const changed = await editDeadLetter(target(), {
        id,
        source: body.source,
        payload: bytesOf(body.payload),
        headers: body.headers,
        author: authorOf(identity, body.reason),
      });
      if (changed !== null) return ok({ changed: [changed] });
      throw new HttpError(404, "NOT_FOUND", `No dead letter ${id} waits`, "GET /api/v1/dead-letters lists them.");
    },
  });
}

function bytesOf({ encoding, text }: z.output<typeof payload>): Buffer {
  if (encoding === "utf-8") return Buffer.from(text, "utf8");
  if (/^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0) return Buffer.from(text, "base64");
  throw new HttpError(400, "BAD_REQUEST", "The payload is no base64, as its encoding says.");
}
