import { z } from "zod";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import { exportedEvents, exportedLetters, noteExport } from "../../operations/exports/export-rows.ts";
import {
  EVENT_COLUMNS,
  EXPORT_FORMS,
  EXPORT_TYPES,
  type ExportForm,
  exportText,
  LETTER_COLUMNS,
} from "../../operations/exports/export-text.ts";
import { parseDeadLetterChoice, parseEventFilter } from "../../operations/filter/filter-language.ts";
import { errorSchema, HttpError } from "../http-error.ts";
import { authorOf, type Identity } from "../identity.ts";
import { type Answer, type Route, route } from "../route.ts";
import { requireSearchable } from "../search-rights.ts";
import { filterQuery } from "./event-routes.ts";

/** Each export queries the database page after page, and the API has few connections. */
const EXPORTS_MAX = 2;

const query = z.strictObject({ q: filterQuery, format: z.enum(EXPORT_FORMS).default("csv") });

const answers = {
  200: {
    description: "All rows that match the filter, as a file",
    schema: null,
    contentType: Object.values(EXPORT_TYPES),
  },
  403: { description: "Requires the right to see payloads", schema: errorSchema },
  429: { description: "Too many exports are running", schema: errorSchema },
};

/** Streams every row that matches a filter, as fast as the client reads. The audit records it. */
export function exportRoutes(target: () => OperationTarget): Route[] {
  let running = 0;
  const enter = (signal: AbortSignal) => {
    if (running >= EXPORTS_MAX) {
      const fix = "Wait for one of them to end.";
      throw new HttpError(429, "TOO_MANY_EXPORTS", `${EXPORTS_MAX} exports are running, the maximum`, fix);
    }
    running += 1;
    signal.addEventListener("abort", () => (running -= 1), { once: true });
  };
  return [
    route({
      method: "GET",
      path: "/api/v1/events/export",
      id: "exportEvents",
      summary: "Export all events that match a filter, as CSV or JSON; recorded in the audit",
      access: "viewer",
      query,
      answers,
      handle: async ({ identity, query: { format, q }, signal }) => {
        const filter = parseEventFilter(q, new Date());
        requireExport(identity);
        requireSearchable(target(), identity, filter);
        enter(signal);
        const pages = await begun(exportedEvents(target(), filter), signal);
        await noteExport(target().database, authorOf(identity), "events", q);
        return file("events", format, exportText(pages, EVENT_COLUMNS, format));
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/dead-letters/export",
      id: "exportDeadLetters",
      summary: "Export all dead letters that match a filter, as CSV or JSON; recorded in the audit",
      access: "viewer",
      query,
      answers,
      handle: async ({ identity, query: { format, q }, signal }) => {
        const choice = parseDeadLetterChoice(q, new Date());
        requireExport(identity);
        requireSearchable(target(), identity, choice);
        enter(signal);
        const pages = await begun(exportedLetters(target().database, choice), signal);
        await noteExport(target().database, authorOf(identity), "dead-letters", q);
        return file("dead-letters", format, exportText(pages, LETTER_COLUMNS, format));
      },
    }),
  ];
}

function requireExport({ maySeePayloads, name }: Identity): void {
  if (maySeePayloads) return;
  const fix = "Use a token with +payloads in its role.";
  throw new HttpError(403, "PAYLOADS_HIDDEN", `${name} must not see payloads, and so must not export events`, fix);
}

/**
 * Reads the first page before the response starts: an invalid filter or a failing database must give an error, not half
 * a file.
 */
async function begun<Row>(
  pages: AsyncGenerator<readonly Row[]>,
  signal: AbortSignal,
): Promise<AsyncIterable<readonly Row[]>> {
  const first = await pages.next();
  return (async function* () {
    if (!first.done) yield first.value;
    for await (const page of pages) {
      if (signal.aborted) return;
      yield page;
    }
  })();
}

function file(name: string, format: ExportForm, body: AsyncIterable<string>): Answer {
  const time = new Date().toISOString().slice(0, 19).replaceAll(":", "");
  const headers = { "content-disposition": `attachment; filename="${name}-${time}.${format}"` };
  return { status: 200, body, contentType: EXPORT_TYPES[format], headers };
}
