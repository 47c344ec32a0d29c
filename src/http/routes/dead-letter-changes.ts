import { z } from "zod";
import type { Author } from "../../operations/audit/author.ts";
import { type ChangeReport, unknownIds } from "../../operations/dead-letters/dead-letter-change.ts";
import { type DeadLetterChoice, requireChoice } from "../../operations/dead-letters/dead-letter-choice.ts";
import { discardDeadLetters } from "../../operations/dead-letters/dead-letter-discard.ts";
import { editDeadLetter } from "../../operations/dead-letters/edit-dead-letter.ts";
import { requireFound } from "../../operations/dead-letters/letter-group.ts";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import { filterText } from "../../operations/filter/filter-language.ts";
import { makePlan } from "../../operations/replay/plan-replay.ts";
import { startPlan } from "../../operations/replay/plan-state.ts";
import { replayDeadLetter } from "../../operations/replay/replay.ts";
import { planReplay } from "../../operations/replay/replay-plan.ts";
import { errorSchema, HttpError } from "../http-error.ts";
import { authorOf, by, mayReason, mustReason, namedAuthor } from "../identity.ts";
import { type Answer, ok, type Route, route } from "../route.ts";
import { changeSchema, startedChangeSchema } from "../schemas/dead-letters.ts";
import { keyChangeSchema } from "../schemas/keys.ts";
import { headersSchema } from "../schemas/shared-shapes.ts";
import { letterChoice } from "./dead-letter-routes.ts";
import { idParams, sourceQuery } from "./event-routes.ts";

const meant = {
  ...letterChoice,
  ids: z.array(z.string().min(1).max(1_000)).min(1).max(10_000).optional().describe("Ids of events"),
  all: z
    .boolean()
    .default(false)
    .describe("Selects every open dead letter. Required where neither ids nor a filter is given"),
  dryRun: z.boolean().default(false).describe("Report what would change, without changing anything"),
  by,
};

const answers: Route["answers"] = {
  200: { description: "The result of a dry run, or of the change of one event", schema: changeSchema },
  202: {
    description: "More than one event: the started plan. Follow its progress by its id",
    schema: startedChangeSchema,
  },
  404: { description: "No open dead letters match", schema: errorSchema },
};

interface Change {
  readonly action: "replay" | "discard";
  readonly all: boolean;
  readonly isDry: boolean;
  readonly author: Author;
}

/** Changes one event named by its id at once. Everything else becomes a plan, which a running relay carries out. */
export function deadLetterChangeRoutes(target: () => OperationTarget): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/v1/dead-letters/replay",
      id: "replayDeadLetters",
      summary: "Replay dead letters: a single id at once, everything else as a plan with a canary",
      access: "operator",
      body: z.strictObject({ ...meant, reason: mayReason }),
      answers,
      handle: async ({ body: { all, dryRun: isDry, by: who, reason, ...chosen }, identity }) =>
        await change(target, chosen, { action: "replay", all, isDry, author: namedAuthor(identity, who, reason) }),
    }),
    route({
      method: "POST",
      path: "/api/v1/dead-letters/discard",
      id: "discardDeadLetters",
      summary: "Discard dead letters permanently: a single id at once, everything else as a plan",
      access: "operator",
      body: z.strictObject({ ...meant, reason: mustReason }),
      answers,
      handle: async ({ body: { all, dryRun: isDry, by: who, reason, ...chosen }, identity }) =>
        await change(target, chosen, { action: "discard", all, isDry, author: namedAuthor(identity, who, reason) }),
    }),
  ];
}

async function change(targetOf: () => OperationTarget, choice: DeadLetterChoice, it: Change): Promise<Answer> {
  requireChoice(choice, it.all);
  const target = targetOf();
  const { database } = target;
  const plan = await planReplay(database, choice, it.action);
  await requireFound(database, plan.count, choice);
  if (it.isDry) return ok({ plan, report: null });
  const [id, ...more] = choice.ids ?? [];
  if (id !== undefined && more.length === 0) {
    return ok({ plan, report: await changeOne(target, { ...choice, ids: [id] }, it) });
  }
  const { ids, ...filter } = choice;
  const unknown = await unknownIds(database, choice);
  const { action, all, author } = it;
  const made = await makePlan(target, { action, subject: "dead", q: filterText(filter), ids, all, author });
  return { status: 202, body: { plan, replay: await startPlan(database, made.id, author), unknown } };
}

async function changeOne(
  target: OperationTarget,
  choice: DeadLetterChoice & { readonly ids: readonly [string] },
  { action, author }: Change,
): Promise<ChangeReport> {
  if (action === "replay") return await replayDeadLetter(target, choice, author);
  return await discardDeadLetters(target, { choice, author: { ...author, reason: author.reason ?? "" } });
}

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
