import { writeSettings } from "../../postgres/lanes.ts";
import { destinationOf } from "../../postgres/pipelines.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { statement, transaction } from "../../postgres/transaction.ts";
import { type AuditAction, noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import { operationReadSettings } from "../events/event-source.ts";
import { isoSql } from "../events/event-time.ts";
import { limitIn, requireLimit } from "./limit.ts";
import { type PauseChange, pauseIn, resumeIn } from "./pause.ts";
import { type KnownLimit, knownPipelines } from "./pipelines.ts";

/** A destination with its pipelines, and the pause and limit that apply to all of them. */
export interface KnownDestination {
  readonly destination: string;
  readonly pipelines: readonly string[];
  /** Also pauses pipelines that are added later. */
  readonly pause: { readonly at: string; readonly by: string; readonly reason: string | null } | null;
  /** Per pipeline and instance, including pipelines that are added later. */
  readonly limit: KnownLimit | null;
}

/** All destinations. */
export async function knownDestinations(database: Database): Promise<readonly KnownDestination[]> {
  const known = await knownPipelines(database);
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "listing the destinations"),
    `select name, ${isoSql("paused_at")}, paused_by, pause_reason, limit_per_second, limited_by, limit_reason
     from ${database.tables.destinations}`,
  );
  const wishes = new Map(rows.map((row) => [row[0] ?? "", row]));
  const byDestination = Map.groupBy(known, ({ pipeline }) => destinationOf(pipeline));
  return [...byDestination]
    .map(([destination, pipelines]): KnownDestination => {
      const [, at, by, reason, perSecond, limitedBy, limitReason] = wishes.get(destination) ?? [];
      return {
        destination,
        pipelines: pipelines.map(({ pipeline }) => pipeline),
        pause: at == null ? null : { at, by: by ?? "", reason: reason ?? null },
        limit:
          perSecond == null
            ? null
            : { perSecond: Number(perSecond), by: limitedBy ?? null, reason: limitReason ?? null },
      };
    })
    .sort((left, right) => left.destination.localeCompare(right.destination));
}

/**
 * Pauses all pipelines of a destination, including those that are added before it is resumed. Idempotent. Null when no
 * pipeline has this destination.
 */
export async function pauseDestination(
  database: Database,
  destination: string,
  author: Author,
): Promise<readonly PauseChange[] | null> {
  return await changeAll(database, destination, author, {
    action: "pause",
    assignments: "paused_at = coalesce(d.paused_at, clock_timestamp()), paused_by = $2, pause_reason = $3",
    values: [author.by, author.reason ?? null],
    act: (session, names, noted) => pauseIn(session, database, names, noted),
  });
}

/** Resumes all pipelines of a destination, including those that were paused individually. */
export async function resumeDestination(
  database: Database,
  destination: string,
  author: Author,
): Promise<readonly PauseChange[] | null> {
  return await changeAll(database, destination, author, {
    action: "resume",
    assignments: "paused_at = null, paused_by = null, pause_reason = null",
    values: [],
    act: (session, names, noted) => resumeIn(session, database, names, noted),
  });
}

/**
 * Limits every pipeline of a destination per instance, including those that are added later. The rates of pipelines and
 * instances add up: none knows what the others send.
 */
export async function limitDestination(
  database: Database,
  destination: string,
  perSecond: number | null,
  author: Author,
): Promise<readonly PauseChange[] | null> {
  requireLimit(perSecond);
  const note = perSecond === null ? [null, null] : [author.by, author.reason ?? null];
  return await changeAll(database, destination, author, {
    action: "limit",
    assignments: "limit_per_second = $2::float8, limited_by = $3, limit_reason = $4",
    values: [perSecond, ...note],
    detail: { perSecond },
    act: (session, names, noted) => limitIn(session, database, names, perSecond, noted),
  });
}

interface Change {
  readonly action: Extract<AuditAction, "pause" | "resume" | "limit">;
  /** SQL assignments to the row `d` of the destination; `$1` is its name. */
  readonly assignments: string;
  readonly values: readonly unknown[];
  readonly detail?: object;
  act(
    session: Session,
    pipelines: readonly string[],
    author: Author & { readonly detail: object },
  ): Promise<readonly PauseChange[]>;
}

async function changeAll(
  database: Database,
  destination: string,
  author: Author,
  { act, action, assignments, detail = {}, values }: Change,
): Promise<readonly PauseChange[] | null> {
  const { destinations, lanes, pipelines } = database.tables;
  return await transaction(database.pool, writeSettings(database, `to ${action}`), async (session) => {
    // Selected as in `knownPipelines`. The lock makes a concurrent registration either visible here, or see what is
    // written here.
    await session.rows(`lock table ${pipelines} in share row exclusive mode`);
    const rows = await session.rows(
      `select name from ${pipelines} p
       where first_slot is null or exists (select from ${lanes} l where l.pipeline = p.name) order by name`,
    );
    const names = rows.map((row) => row[0] ?? "").filter((name) => destinationOf(name) === destination);
    if (names.length === 0) return null;
    await session.rows(`insert into ${destinations} (name) values ($1) on conflict (name) do nothing`, [destination]);
    await session.rows(
      `update ${destinations} d set ${assignments}, updated_at = clock_timestamp() where d.name = $1`,
      [destination, ...values],
    );
    const changes = await act(session, names, { ...author, detail: { destination } });
    const changed = changes.filter(({ hasChanged }) => hasChanged).map(({ pipeline }) => pipeline);
    if (changed.length > 0) {
      await noteAction(session, database, author, {
        action,
        target: destination,
        detail: { ...detail, pipelines: changed },
      });
    }
    return changes;
  });
}
