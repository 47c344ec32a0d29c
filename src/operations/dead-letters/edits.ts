import type { EventHeaders } from "../../core/event.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";
import { headersOf } from "../events/event-content.ts";
import { bytesOf, type ShownPayload, shownPayload } from "../events/event-payload.ts";
import { operationReadSettings } from "../events/event-source.ts";
import { isoSql } from "../events/event-time.ts";
import { type ShownRules, shownTo } from "../events/redact-shown.ts";

interface Content {
  readonly headers: EventHeaders;
  /** Null without the right to see payloads. */
  readonly payload: ShownPayload | null;
}

/** A payload or headers that a person, or a person's plan, has replaced. */
export interface ShownEdit {
  readonly id: string;
  readonly at: string;
  readonly pipeline: string;
  readonly by: string;
  readonly reason: string | null;
  readonly plan: string | null;
  readonly before: Content;
  readonly after: Content;
}

const EDITS_MAX = 20;
/** Per payload: enough to see what was changed. */
const EDIT_BYTES_MAX = 128 * 1024;

/** Edits of an event, newest first. */
export async function editsOf(database: Database, eventId: string): Promise<readonly ShownEdit[]> {
  if (eventId.includes("\0")) return [];
  const start = (column: string) => `substring(${column} from 1 for ${EDIT_BYTES_MAX}), octet_length(${column})`;
  const rows = await transaction(database.pool, operationReadSettings(database, "listing edits"), (session) =>
    session.rows(
      `select id, ${isoSql("at")}, pipeline, actor, reason, plan, ${start("payload_before")}, headers_before::text,
         ${start("payload_after")}, headers_after::text
       from ${database.tables.edits} where event_id = $1 order by id desc limit ${EDITS_MAX}`,
      [eventId],
    ),
  );
  return rows.map((row) => ({
    id: row[0] ?? "",
    at: row[1] ?? "",
    pipeline: row[2] ?? "",
    by: row[3] ?? "",
    reason: row[4] ?? null,
    plan: row[5] ?? null,
    before: { payload: shownPayload(bytesOf(row[6]), Number(row[7])), headers: headersOf(row[8]) },
    after: { payload: shownPayload(bytesOf(row[9]), Number(row[10])), headers: headersOf(row[11]) },
  }));
}

/** The edit with what the viewer must not see removed. */
export function editShownTo(edit: ShownEdit, rules: ShownRules | undefined, maySeePayloads: boolean): ShownEdit {
  return {
    ...edit,
    before: shownTo(edit.before, rules, maySeePayloads),
    after: shownTo(edit.after, rules, maySeePayloads),
  };
}

/** As long as plans are kept. */
const KEPT_DAYS = 30;
const AT_ONCE = 1_000;

/** Deletes edits that are older than a month, including payloads; the audit keeps their entries. Returns how many. */
export async function pruneEdits(database: Database): Promise<number> {
  const { edits } = database.tables;
  for (let count = 0; ; count += AT_ONCE) {
    const rows = await transaction(database.pool, writeSettings(database, "forgetting old edits"), (session) =>
      session.rows(
        `delete from ${edits} where id in (select id from ${edits}
           where at < clock_timestamp() - interval '${KEPT_DAYS} days' order by at limit ${AT_ONCE}) returning 1`,
      ),
    );
    if (rows.length < AT_ONCE) return count + rows.length;
  }
}
