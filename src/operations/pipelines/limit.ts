import { RelayError } from "../../core/errors.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import { endOverrides } from "./destination-overrides.ts";
import type { PauseChange } from "./pause.ts";

/** More than any destination accepts, so that a typing error is refused. */
export const LIMIT_PER_SECOND_MAX = 1_000_000;
/** The lowest rate limit. */
export const LIMIT_PER_SECOND_MIN = 0.01;

/**
 * Sets the rate limit of these pipelines per instance; null removes it. Takes effect within three seconds and survives
 * restarts. Unknown names are left out of the result.
 */
export async function limitPipelines(
  database: Database,
  pipelines: readonly string[],
  perSecond: number | null,
  author: Author,
): Promise<readonly PauseChange[]> {
  requireLimit(perSecond);
  return await transaction(database.pool, writeSettings(database, "setting a limit"), async (session) => {
    const changes = await limitIn(session, database, pipelines, perSecond, author);
    if (perSecond === null) await endOverrides(session, database, "limit");
    return changes;
  });
}

/** Throws CONFIG_INVALID for a rate out of range. */
export function requireLimit(perSecond: number | null): void {
  if (perSecond === null || (perSecond >= LIMIT_PER_SECOND_MIN && perSecond <= LIMIT_PER_SECOND_MAX)) return;
  const range = `${LIMIT_PER_SECOND_MIN} to ${LIMIT_PER_SECOND_MAX}`;
  throw new RelayError("CONFIG_INVALID", `Invalid rate limit of ${perSecond} events per second: use ${range}`);
}

/** Like `limitPipelines`, in the caller's transaction. */
export async function limitIn(
  session: Session,
  database: Database,
  pipelines: readonly string[],
  perSecond: number | null,
  author: Author & { readonly detail?: object },
): Promise<readonly PauseChange[]> {
  const table = database.tables.pipelines;
  const note = perSecond === null ? [null, null] : [author.by, author.reason ?? null];
  const rows = await session.rows(
    `with w as (select name, limit_per_second from ${table} where name = any($1::text[]) order by name for update)
     update ${table} p set limit_per_second = $2::float8, limited_by = $3, limit_reason = $4,
       updated_at = clock_timestamp()
     from w where p.name = w.name
     returning p.name, w.limit_per_second is distinct from p.limit_per_second, w.limit_per_second`,
    [pipelines, perSecond, ...note],
  );
  const changes = rows
    .map(([pipeline, hasChanged, before]) => ({
      pipeline: pipeline ?? "",
      hasChanged: hasChanged === "t",
      before: before == null ? null : Number(before),
    }))
    .sort((left, right) => left.pipeline.localeCompare(right.pipeline));
  for (const { before, hasChanged, pipeline: target } of changes) {
    const detail = { perSecond, before, ...author.detail };
    if (hasChanged) await noteAction(session, database, author, { action: "limit", target, detail });
  }
  return changes.map(({ pipeline, hasChanged }) => ({ pipeline, hasChanged }));
}
