import { z } from "zod";
import type { DeadLetterChoice } from "../../operations/dead-letters/dead-letter-choice.ts";
import { groupDeadLetters } from "../../operations/dead-letters/dead-letter-groups.ts";
import { listDeadLetters, showDeadLetters } from "../../operations/dead-letters/dead-letter-list.ts";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import { shownTo } from "../../operations/events/redact-shown.ts";
import { bothFilters, parseDeadLetterChoice } from "../../operations/filter/filter-language.ts";
import { errorSchema, HttpError } from "../http-error.ts";
import { ok, type Route, route } from "../route.ts";
import { groupsSchema, letterPageSchema, shownLettersSchema } from "../schemas/dead-letters.ts";
import { requireSearchable } from "../search-rights.ts";
import { filterQuery, idParams, keyQuery, pageQuery, sourceQuery, typeQuery } from "./event-routes.ts";

/** Query parameters that select dead letters. */
export const letterChoice = {
  source: sourceQuery,
  type: typeQuery,
  key: keyQuery,
  group: z.string().max(3_000).optional().describe("Fingerprints of errors, or prefixes of them, separated by commas"),
};

function chosenBy(q: string, single: DeadLetterChoice): DeadLetterChoice {
  return bothFilters(parseDeadLetterChoice(q, new Date()), single);
}

const noGroup = { description: "No error group has this prefix, or several have", schema: errorSchema };

export function deadLetterRoutes(target: () => OperationTarget): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/dead-letters",
      id: "listDeadLetters",
      summary: "Dead letters, newest first",
      access: "viewer",
      query: z.strictObject({ ...pageQuery, q: filterQuery, ...letterChoice, resolved: z.stringbool().optional() }),
      answers: {
        200: { description: "One page", schema: letterPageSchema },
        404: noGroup,
        403: { description: "text: and payload. require the right to see payloads", schema: errorSchema },
      },
      handle: async ({ identity, query: { limit, cursor, q, ...single } }) => {
        const chosen = chosenBy(q, single);
        requireSearchable(target(), identity, chosen);
        return ok(await listDeadLetters(target().database, chosen, { limit, cursor }));
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/dead-letters/groups",
      id: "groupDeadLetters",
      summary: "Dead letters grouped by normalized error",
      access: "viewer",
      query: z.strictObject({ q: filterQuery, ...letterChoice }),
      answers: {
        200: { description: "Most frequent error first", schema: groupsSchema },
        404: noGroup,
        403: { description: "text: and payload. require the right to see payloads", schema: errorSchema },
      },
      handle: async ({ identity, query: { q, ...single } }) => {
        const chosen = chosenBy(q, single);
        requireSearchable(target(), identity, chosen);
        return ok({ groups: await groupDeadLetters(target().database, chosen) });
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/dead-letters/{id}",
      id: "showDeadLetter",
      summary: "Dead letters of one event with the error of every attempt, including resolved ones",
      access: "viewer",
      params: idParams,
      query: z.strictObject({ source: sourceQuery }),
      answers: {
        200: { description: "One per source and pipeline", schema: shownLettersSchema },
        404: { description: "No dead letter of this event", schema: errorSchema },
      },
      handle: async ({ params: { id }, query: { source }, identity: { maySeePayloads } }) => {
        const found = await showDeadLetters(target().database, id, source);
        const deadLetters = found.map((letter) => shownTo(letter, target().shown, maySeePayloads));
        if (deadLetters.length === 0) throw new HttpError(404, "NOT_FOUND", `no dead letter with id ${id}`);
        return ok({ deadLetters });
      },
    }),
  ];
}
