import { writeSettings } from "../postgres/lanes.ts";
import type { Database } from "../postgres/pool.ts";
import { transaction } from "../postgres/transaction.ts";
import { noteAction } from "./audit.ts";
import type { Author } from "./author.ts";

export interface PauseChange {
  readonly pipeline: string;
  /** False when it was so already. */
  readonly hasChanged: boolean;
}

/**
 * Stops these pipelines: every instance ceases to claim within three seconds, finishes what is in flight and keeps its
 * lanes. It lasts until somebody resumes, through restarts too. Names that nobody knows are left out of the answer. With
 * `handsOver` the lanes are released as well, so that another deployment on the table may take them.
 */
export async function pausePipelines(
  database: Database,
  pipelines: readonly string[],
  author: Author & { readonly handsOver?: boolean },
): Promise<readonly PauseChange[]> {
  const handsOver = author.handsOver === true ? ", lanes_wanted = p.lanes" : "";
  const assignments = `paused_at = coalesce(p.paused_at, clock_timestamp()), paused_by = $2, pause_reason = $3${handsOver}`;
  const values = [author.by, author.reason ?? null];
  return await change(database, "pause", pipelines, author, { changes: "w.paused_at is null", assignments, values });
}

/** Lets these pipelines go on. A number of lanes that was on its way is given up. */
export async function resumePipelines(
  database: Database,
  pipelines: readonly string[],
  author: Author,
): Promise<readonly PauseChange[]> {
  const assignments = "paused_at = null, paused_by = null, pause_reason = null, lanes_wanted = null";
  const changes = "w.paused_at is not null";
  return await change(database, "resume", pipelines, author, { changes, assignments, values: [] });
}

interface Change {
  /** Whether it was otherwise before, over the row `w`. */
  readonly changes: string;
  readonly assignments: string;
  readonly values: readonly unknown[];
}

async function change(
  database: Database,
  action: "pause" | "resume",
  pipelines: readonly string[],
  author: Author,
  { assignments, changes, values }: Change,
): Promise<readonly PauseChange[]> {
  const table = database.tables.pipelines;
  return await transaction(database.pool, writeSettings(database, `to ${action}`), async (session) => {
    const rows = await session.rows(
      `with w as (select name, paused_at from ${table} where name = any($1::text[]) order by name for update)
       update ${table} p set ${assignments}, updated_at = clock_timestamp() from w where p.name = w.name
       returning p.name, ${changes}`,
      [pipelines, ...values],
    );
    const changed = rows
      .map((row) => ({ pipeline: row[0] ?? "", hasChanged: row[1] === "t" }))
      .sort((left, right) => left.pipeline.localeCompare(right.pipeline));
    for (const { hasChanged, pipeline: target } of changed) {
      if (hasChanged) await noteAction(session, database, author, { action, target });
    }
    return changed;
  });
}
