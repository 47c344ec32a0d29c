import { z } from "zod";
import type { ChangeReport } from "../operations/dead-letter-change.ts";
import { type DeadLetterChoice, requireChoice } from "../operations/dead-letter-choice.ts";
import { discardDeadLetters } from "../operations/dead-letter-discard.ts";
import { groupDeadLetters } from "../operations/dead-letter-groups.ts";
import { listDeadLetters, showDeadLetters } from "../operations/dead-letter-list.ts";
import type { OperationTarget } from "../operations/event-source.ts";
import { bothFilters, parseDeadLetterChoice } from "../operations/filter-language.ts";
import { shownTo } from "../operations/redact-shown.ts";
import { replay } from "../operations/replay.ts";
import { planReplay } from "../operations/replay-plan.ts";
import { filterQuery, idParams, keyQuery, pageQuery, sourceQuery, typeQuery } from "./event-routes.ts";
import { errorSchema, HttpError } from "./http-error.ts";
import { by, mayReason, mustReason, namedAuthor } from "./named-author.ts";
import { type Answer, ok, type Route, route } from "./route.ts";
import { changeSchema, groupsSchema, letterPageSchema, shownLettersSchema } from "./schemas/dead-letters.ts";
import { requireText } from "./search-rights.ts";

const choice = {
  source: sourceQuery,
  type: typeQuery,
  key: keyQuery,
  group: z.string().max(100).optional().describe("The fingerprint of the error"),
};

const ids = z.array(z.string().min(1).max(1_000)).min(1).max(10_000).optional().describe("Of the events");
const dryRun = z.boolean().default(false).describe("Tell what would be done, and change nothing");

export function deadLetterRoutes(target: () => OperationTarget): Route[] {
  return [...readRoutes(target), ...changeRoutes(target)];
}

function chosenBy(q: string, single: DeadLetterChoice): DeadLetterChoice {
  return bothFilters(parseDeadLetterChoice(q, new Date()), single);
}

function readRoutes(target: () => OperationTarget): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/dead-letters",
      id: "listDeadLetters",
      summary: "Events that wait for a person, the last ones first",
      access: "viewer",
      query: z.strictObject({ ...pageQuery, q: filterQuery, ...choice, resolved: z.stringbool().optional() }),
      answers: {
        200: { description: "A page", schema: letterPageSchema },
        403: { description: "text: is for those who may see payloads", schema: errorSchema },
      },
      handle: async ({ identity, query: { limit, cursor, q, ...single } }) => {
        const chosen = chosenBy(q, single);
        requireText(target(), identity, chosen.text);
        return ok(await listDeadLetters(target().database, chosen, { limit, cursor }));
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/dead-letters/groups",
      id: "groupDeadLetters",
      summary: "By error, without what is special to one event",
      access: "viewer",
      query: z.strictObject({ q: filterQuery, ...choice }),
      answers: {
        200: { description: "The most frequent first", schema: groupsSchema },
        403: { description: "text: is for those who may see payloads", schema: errorSchema },
      },
      handle: async ({ identity, query: { q, ...single } }) => {
        const chosen = chosenBy(q, single);
        requireText(target(), identity, chosen.text);
        return ok({ groups: await groupDeadLetters(target().database, chosen) });
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/dead-letters/{id}",
      id: "showDeadLetter",
      summary: "The copies of one event with the error of every attempt, resolved ones too",
      access: "viewer",
      params: idParams,
      query: z.strictObject({ source: sourceQuery }),
      answers: {
        200: { description: "One per source and pipeline", schema: shownLettersSchema },
        404: { description: "There is none", schema: errorSchema },
      },
      handle: async ({ params: { id }, query: { source }, identity: { maySeePayloads } }) => {
        const found = await showDeadLetters(target().database, id, source);
        const deadLetters = found.map((letter) => shownTo(letter, target().shown, maySeePayloads));
        if (deadLetters.length === 0) throw new HttpError(404, "NOT_FOUND", `There is no dead letter of ${id}`);
        return ok({ deadLetters });
      },
    }),
  ];
}

function changeRoutes(target: () => OperationTarget): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/v1/dead-letters/replay",
      id: "replayDeadLetters",
      summary: "Try dead letters again, from the start and in order",
      access: "operator",
      body: z.strictObject({
        ...choice,
        ids,
        all: z.boolean().default(false).describe("Every dead letter; must be said"),
        dryRun,
        by,
        reason: mayReason,
      }),
      answers: {
        200: { description: "The plan, and what came of it", schema: changeSchema },
        404: { description: "None of the ids is a dead letter that waits", schema: errorSchema },
      },
      handle: async ({ body: { all, dryRun: isDry, by: who, reason, ...chosen }, identity }) => {
        requireChoice(chosen, all);
        return await planned(target(), chosen, isDry, () =>
          replay(target(), { choice: chosen, all, author: namedAuthor(identity, who, reason) }),
        );
      },
    }),
    route({
      method: "POST",
      path: "/api/v1/dead-letters/discard",
      id: "discardDeadLetters",
      summary: "Give dead letters up: they are never sent, what waits behind them goes on",
      access: "operator",
      body: z.strictObject({ ...choice, ids, dryRun, by, reason: mustReason }),
      answers: {
        200: { description: "The plan, and what came of it", schema: changeSchema },
        404: { description: "None of the ids is a dead letter that waits", schema: errorSchema },
      },
      handle: async ({ body: { dryRun: isDry, by: who, reason, ...chosen }, identity }) => {
        requireChoice(chosen, false);
        return await planned(target(), chosen, isDry, () =>
          discardDeadLetters(target(), { choice: chosen, author: { ...namedAuthor(identity, who), reason } }),
        );
      },
    }),
  ];
}

async function planned(
  { database }: OperationTarget,
  chosen: DeadLetterChoice,
  isDry: boolean,
  act: () => Promise<ChangeReport>,
): Promise<Answer> {
  const plan = await planReplay(database, chosen);
  if (isDry) return ok({ plan, report: null });
  const report = await act();
  if (chosen.ids !== undefined && report.done + report.leftCount === 0) {
    throw new HttpError(
      404,
      "NOT_FOUND",
      "None of these is a dead letter that waits",
      "GET /api/v1/dead-letters lists them.",
    );
  }
  return ok({ plan, report });
}
