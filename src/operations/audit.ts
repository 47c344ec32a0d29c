import { quoteLiteral } from "../postgres/identifiers.ts";
import type { Database } from "../postgres/pool.ts";
import type { Session } from "../postgres/session.ts";
import { statement } from "../postgres/transaction.ts";
import type { Author, Via } from "./author.ts";
import { LIST_ROWS_MAX } from "./event-list.ts";
import { operationReadSettings } from "./event-source.ts";
import { isoSql } from "./event-time.ts";

/** What a person did. */
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
  "login",
  "login-refused",
  "logout",
  "payload-read",
] as const;

export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export interface NewAuditEntry {
  readonly action: AuditAction;
  /** A pipeline, a source, a plan or a key: what the action was done to. */
  readonly target?: string | undefined;
  readonly eventId?: string | undefined;
  readonly detail?: object;
}

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

export interface AuditFilter {
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly target?: string | undefined;
  readonly eventId?: string | undefined;
}

/** In the transaction of the action itself, so that there is neither without the other. */
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

/** The same action on many events, an entry for each. */
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

/** What a plan did to its events, one by one: of interest with an event, and noise beside what people did. */
const BY_PLAN = "(via = 'relay' and event_id is not null)";

/** More than people and refused logins write in the life of a session. */
const LOOKED_THROUGH_MAX = 20_000;

/** The marks of the console's sessions that a logout has ended within half a day. */
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

/** The last ones first. What plans did to single events is left out unless an event or an action is asked for. */
export async function listAudit(
  database: Database,
  { action, actor, eventId, target }: AuditFilter,
  { limit = 50, cursor }: { readonly limit?: number; readonly cursor?: string | undefined } = {},
): Promise<{ readonly entries: readonly AuditEntry[]; readonly cursor: string | null }> {
  const rows = Math.max(1, Math.min(limit, LIST_ROWS_MAX));
  const wanted = { actor, action, target, event_id: eventId };
  const conditions = Object.entries(wanted).flatMap(([column, value]) =>
    value === undefined ? [] : [`${column} = ${quoteLiteral(value)}`],
  );
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
