import { quoteLiteral } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { statement } from "../../postgres/transaction.ts";
import { type EventFilter, timeConditions } from "../events/event-filter.ts";
import { LIST_ROWS_MAX } from "../events/event-list.ts";
import { operationReadSettings } from "../events/event-source.ts";
import { isoSql } from "../events/event-time.ts";
import { parseEventFilter } from "../filter/filter-language.ts";
import { quotedValue } from "../filter/filter-words.ts";
import type { Author, Via } from "./author.ts";

/** The actions that the audit records. */
export const AUDIT_ACTIONS = [
  "pause",
  "resume",
  "limit",
  "lanes",
  "replay",
  "discard",
  "edit",
  "plan",
  "plan-run",
  "plan-pause",
  "plan-cancel",
  "plan-stopped",
  "plan-done",
  "key-retry",
  "key-skip",
  "key-resume",
  "key-discard",
  "log-seek",
  "log-reset",
  "pipeline-forget",
  "login",
  "login-refused",
  "logout",
  "payload-read",
  "export",
] as const;

/** One of the recorded actions. */
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** A new entry of the audit. */
export interface NewAuditEntry {
  readonly action: AuditAction;
  /** The target of the action: a pipeline, a source, a plan or a key. */
  readonly target?: string | undefined;
  readonly eventId?: string | undefined;
  readonly detail?: object;
}

/** A stored entry of the audit. */
export interface AuditEntry {
  readonly id: string;
  readonly at: string;
  readonly actor: string;
  readonly via: Via;
  readonly action: string;
  readonly target: string | null;
  readonly eventId: string | null;
  readonly reason: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Selects entries of the audit. */
export interface AuditFilter {
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly target?: string | undefined;
  readonly eventId?: string | undefined;
  /** Times as in the filter language, absolute or relative; `since` is inclusive, `until` exclusive. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

/** Records an action in the transaction of the action itself, so that neither exists without the other. */
export async function noteAction(
  session: Session,
  { tables }: Database,
  { by, reason, via = "cli" }: Author,
  { action, detail = {}, eventId, target }: NewAuditEntry,
): Promise<void> {
  await session.rows(
    `insert into ${tables.audit} (actor, via, action, target, event_id, reason, detail)
     values ($1, $2, $3, $4, $5, $6, $7::jsonb)`,
    [by, via, action, target ?? null, eventId ?? null, reason ?? null, JSON.stringify(detail)],
  );
}

/** Records the same action for many events, one entry per event. */
export async function noteActionOfEach(
  session: Session,
  { tables }: Database,
  { by, reason, via = "cli" }: Author,
  { action, target }: Pick<NewAuditEntry, "action" | "target">,
  eventIds: readonly string[],
): Promise<void> {
  if (eventIds.length === 0) return;
  await session.rows(
    `insert into ${tables.audit} (actor, via, action, target, event_id, reason)
     select $1, $2, $3, $4, id, $5 from unnest($6::text[]) id`,
    [by, via, action, target ?? null, reason ?? null, eventIds],
  );
}

/** Entries for single events of a plan: relevant for one event, noise among the actions of operators. */
const BY_PLAN = "(via = 'relay' and event_id is not null)";

/** More entries than operators and refused logins write in the lifetime of a session. */
const LOOKED_THROUGH_MAX = 20_000;

/** Hashes of the console sessions that a logout ended in the last twelve hours. */
export async function endedSessions(database: Database): Promise<readonly string[]> {
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "reading the logouts"),
    `select detail->>'session' from (select action, at, detail from ${database.tables.audit} where not ${BY_PLAN}
       order by id desc limit ${LOOKED_THROUGH_MAX}) last
     where action = 'logout' and at > clock_timestamp() - interval '12 hours'`,
  );
  return rows.flatMap(([mark]) => mark ?? []);
}

/** Parses times with the filter language, so that they mean the same everywhere. */
function rangeOf(since: string | undefined, until: string | undefined): Pick<EventFilter, "since" | "until"> {
  const words = Object.entries({ since, until }).flatMap(([field, value]) =>
    value === undefined ? [] : [`${field}:${quotedValue(value)}`],
  );
  return parseEventFilter(words.join(" "), new Date());
}

/** Entries, newest first. Entries for single events of a plan are left out unless an event or an action is given. */
export async function listAudit(
  database: Database,
  { action, actor, eventId, since, target, until }: AuditFilter,
  { limit = 50, cursor }: { readonly limit?: number; readonly cursor?: string | undefined } = {},
): Promise<{ readonly entries: readonly AuditEntry[]; readonly cursor: string | null }> {
  const rows = Math.max(1, Math.min(limit, LIST_ROWS_MAX));
  const wanted = { actor, action, target, event_id: eventId };
  const conditions = Object.entries(wanted).flatMap(([column, value]) =>
    value === undefined ? [] : [`${column} = ${quoteLiteral(value)}`],
  );
  conditions.push(...timeConditions("at", rangeOf(since, until)));
  if (eventId === undefined && action === undefined) conditions.push(`not ${BY_PLAN}`);
  if (cursor !== undefined) conditions.push(`id < ${BigInt(/^\d{1,18}$/.test(cursor) ? cursor : "0")}`);
  const found = await statement(
    database.pool,
    operationReadSettings(database, "reading the audit"),
    `select id, ${isoSql("at")}, actor, via, action, target, event_id, reason, detail::text from ${database.tables.audit}
     ${conditions.length === 0 ? "" : `where ${conditions.join(" and ")}`} order by id desc limit ${rows + 1}`,
  );
  const entries = found.slice(0, rows).map((row) => ({
    id: row[0] ?? "",
    at: row[1] ?? "",
    actor: row[2] ?? "",
    via: row[3] as Via,
    action: row[4] ?? "",
    target: row[5] ?? null,
    eventId: row[6] ?? null,
    reason: row[7] ?? null,
    detail: JSON.parse(row[8] ?? "{}") as Record<string, unknown>,
  }));
  return { entries, cursor: found.length > rows ? (entries.at(-1)?.id ?? null) : null };
}
