import { RelayError } from "../core/errors.ts";
import { writeSettings } from "../postgres/lanes.ts";
import type { Database } from "../postgres/pool.ts";
import { transaction } from "../postgres/transaction.ts";
import { noteAction } from "./audit.ts";
import type { Author } from "./author.ts";
import type { PauseChange } from "./pause.ts";

/** More than any destination takes; a slip of the finger is refused rather than obeyed. */
export const LIMIT_PER_SECOND_MAX = 1_000_000;
export const LIMIT_PER_SECOND_MIN = 0.01;

/**
 * Lets each instance send so many events of these pipelines a second at most, within three seconds and through restarts;
 * null lets them go as fast as they can. Names that nobody knows are left out of the answer.
 */
export async function limitPipelines(
  database: Database,
  pipelines: readonly string[],
  perSecond: number | null,
  author: Author,
): Promise<readonly PauseChange[]> {
  if (perSecond !== null && !(perSecond >= LIMIT_PER_SECOND_MIN && perSecond <= LIMIT_PER_SECOND_MAX)) {
    const range = `${LIMIT_PER_SECOND_MIN} to ${LIMIT_PER_SECOND_MAX}`;
    throw new RelayError("CONFIG_INVALID", `A limit of ${perSecond} events a second is not possible: set ${range}`);
  }
  const table = database.tables.pipelines;
  const note = perSecond === null ? [null, null] : [author.by, author.reason ?? null];
  return await transaction(database.pool, writeSettings(database, "setting a limit"), async (session) => {
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
      if (hasChanged)
        await noteAction(session, database, author, { action: "limit", target, detail: { perSecond, before } });
    }
    return changes.map(({ pipeline, hasChanged }) => ({ pipeline, hasChanged }));
  });
}
