import { RelayError } from "../../core/errors.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";
import { noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import type { DeadLetterChoice } from "../dead-letters/dead-letter-choice.ts";
import { type DeadLetter, listDeadLetters } from "../dead-letters/dead-letter-list.ts";
import type { EventFilter } from "../events/event-filter.ts";
import { LIST_ROWS_MAX, type ListedEvent, listEvents } from "../events/event-list.ts";
import type { OperationTarget } from "../events/event-source.ts";

/**
 * Streams all matching events page by page. A page is read only after the previous one was consumed, so that memory and
 * database load stay bounded. An unreadable source ends the export with an error, never silently.
 */
export async function* exportedEvents(
  target: OperationTarget,
  filter: EventFilter,
): AsyncGenerator<readonly ListedEvent[]> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await listEvents(target, filter, { limit: LIST_ROWS_MAX, cursor });
    const [broken] = page.broken;
    if (broken !== undefined) {
      const what = `${broken.source} cannot be read, so the export would not be whole: ${broken.reason}`;
      throw new RelayError("TABLE_MISSING", `${what}. Select another source, or fix it`);
    }
    yield page.events;
    cursor = page.cursor;
  }
}

/** Streams all matching dead letters page by page. */
export async function* exportedLetters(
  database: Database,
  choice: DeadLetterChoice,
): AsyncGenerator<readonly DeadLetter[]> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await listDeadLetters(database, choice, { limit: LIST_ROWS_MAX, cursor });
    yield page.deadLetters;
    cursor = page.cursor;
  }
}

/** Records who exported what, like every read of a payload. */
export async function noteExport(database: Database, author: Author, what: string, filter: string): Promise<void> {
  await transaction(database.pool, writeSettings(database, "noting an export"), (session) =>
    noteAction(session, database, author, { action: "export", target: what, detail: { filter } }),
  );
}
