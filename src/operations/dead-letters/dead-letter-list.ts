import { RelayError } from "../../core/errors.ts";
import type { EventHeaders } from "../../core/event.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Row } from "../../postgres/session.ts";
import { statement } from "../../postgres/transaction.ts";
import { attemptsOf, type FailedAttempt, headersOf, numbered } from "../events/event-content.ts";
import { LIST_ROWS_MAX } from "../events/event-list.ts";
import { bytesOf, SHOWN_BYTES_MAX, type ShownPayload, shownPayload } from "../events/event-payload.ts";
import { operationReadSettings } from "../events/event-source.ts";
import { isoSql } from "../events/event-time.ts";
import { choiceCondition, type DeadLetterChoice } from "./dead-letter-choice.ts";
import { withWholeGroup } from "./letter-group.ts";

/** A dead letter without its payload. */
export interface DeadLetter {
  /** Id of the copy. The event's own id is unique only within its source. */
  readonly letterId: string;
  readonly source: string;
  readonly pipeline: string;
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly correlationId: string | null;
  readonly reason: string;
  readonly group: string;
  readonly failures: number;
  readonly firstFailedAt: string | null;
  readonly lastFailedAt: string | null;
  /** How it was resolved; null while it is open. */
  readonly resolution: DeadLetterResolution | null;
}

/** Who resolved a dead letter, when and how. */
export interface DeadLetterResolution {
  readonly how: "replayed" | "discarded";
  readonly at: string;
  readonly by: string | null;
  readonly reason: string | null;
}

/** A dead letter with everything that is known of it. */
export interface ShownDeadLetter extends DeadLetter {
  readonly headers: EventHeaders;
  readonly payload: ShownPayload;
  readonly createdAt: string | null;
  readonly errors: readonly FailedAttempt[];
}

const COLUMNS = `d.id, d.source_schema || '.' || d.source_table, d.pipeline, d.original_event_id, d.event_type, d.event_key,
  d.correlation_id, d.failure_reason, d.fingerprint, d.failure_count,
  ${isoSql("d.first_failed_at")}, ${isoSql("d.last_failed_at")}, d.resolution, ${isoSql("d.resolved_at")},
  d.resolved_by, d.resolution_note`;

/** Dead letters, newest first. */
export async function listDeadLetters(
  database: Database,
  choice: DeadLetterChoice,
  { limit = 50, cursor }: { readonly limit?: number; readonly cursor?: string | undefined } = {},
): Promise<{ readonly deadLetters: readonly DeadLetter[]; readonly cursor: string | null }> {
  const rows = Math.max(1, Math.min(limit, LIST_ROWS_MAX));
  const behind = cursor === undefined ? "" : `and (d.last_failed_at, d.id) < (${cursorValues(cursor)})`;
  const found = await read(
    database,
    `select ${COLUMNS}, d.last_failed_at::text from ${database.tables.failedEvents} d
     where ${choiceCondition(await withWholeGroup(database, choice))} ${behind} order by d.last_failed_at desc, d.id desc limit ${rows + 1}`,
  );
  const page = found.slice(0, rows);
  const last = page.at(-1);
  const next = found.length > rows && last !== undefined ? `${last[16]}_${last[0]}` : null;
  return {
    deadLetters: page.map(deadLetterOf),
    cursor: next === null ? null : Buffer.from(next).toString("base64url"),
  };
}

/** All letters of the event, or the one with this letter id, including resolved ones. */
export async function showDeadLetters(
  database: Database,
  id: string,
  source?: string,
): Promise<readonly ShownDeadLetter[]> {
  const letters = await readDeadLetters(database, id, source);
  return letters.map((letter) => ({ ...letter, errors: numbered(letter.errors) }));
}

/** As `showDeadLetters`, with attempts as they were counted: each replay starts again at 1. */
export async function readDeadLetters(
  database: Database,
  id: string,
  source?: string,
): Promise<readonly ShownDeadLetter[]> {
  const rows = await read(
    database,
    `select ${COLUMNS}, d.headers::text, substring(d.payload from 1 for ${SHOWN_BYTES_MAX}), octet_length(d.payload),
       ${isoSql("d.event_created_at")}, d.errors::text
     from ${database.tables.failedEvents} d where ${choiceCondition({ ids: [id], source, resolved: true })}
     order by d.last_failed_at desc limit 100`,
  );
  return rows.map((row) => ({
    ...deadLetterOf(row),
    headers: headersOf(row[16]),
    payload: shownPayload(bytesOf(row[17]), Number(row[18])),
    createdAt: row[19] ?? null,
    errors: attemptsOf(row[20]),
  }));
}

/** A person waits for the response, so the read must be bounded. */
async function read(database: Database, text: string): Promise<readonly Row[]> {
  return await statement(database.pool, operationReadSettings(database, "reading the dead letters"), text);
}

function deadLetterOf(row: Row): DeadLetter {
  const how = row[12];
  return {
    letterId: row[0] ?? "",
    source: row[1] ?? "",
    pipeline: row[2] ?? "",
    id: row[3] ?? "",
    type: row[4] ?? "",
    key: row[5] ?? null,
    correlationId: row[6] ?? null,
    reason: row[7] ?? "",
    group: row[8] ?? "",
    failures: Number(row[9]),
    firstFailedAt: row[10] ?? null,
    lastFailedAt: row[11] ?? null,
    resolution:
      how === "replayed" || how === "discarded"
        ? { how, at: row[13] ?? "", by: row[14] ?? null, reason: row[15] ?? null }
        : null,
  };
}

function cursorValues(cursor: string): string {
  const [at = "", id = ""] = Buffer.from(cursor, "base64url").toString().split("_");
  if (!/^[0-9 :.+-]{10,40}$/.test(at) || !/^[0-9a-f-]{36}$/.test(id)) {
    throw new RelayError("CONFIG_INVALID", "The cursor is invalid: use one that a list returned");
  }
  return `${quoteLiteral(at)}::timestamptz, ${quoteLiteral(id)}::uuid`;
}
