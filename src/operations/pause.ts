import { writeSettings } from "../postgres/lanes.ts";
import type { Database } from "../postgres/pool.ts";
import { transaction } from "../postgres/transaction.ts";

interface PauseOptions {
  /** Who wants it, for the others who see it. */
  readonly by: string;
  readonly reason?: string | undefined;
}

export interface PauseChange {
  readonly pipeline: string;
  /** False when it was so already. */
  readonly hasChanged: boolean;
}

/**
 * Stops these pipelines: every instance ceases to claim within three seconds, finishes what is in flight and keeps its
 * lanes. It lasts until somebody resumes, through restarts too. Names that nobody knows are left out of the answer.
 */
export async function pausePipelines(
  database: Database,
  pipelines: readonly string[],
  { by, reason }: PauseOptions,
): Promise<readonly PauseChange[]> {
  const assignments = `paused_at = coalesce(p.paused_at, clock_timestamp()), paused_by = $2, pause_reason = $3`;
  return await change(database, "pausing", pipelines, "w.paused_at is null", assignments, [by, reason ?? null]);
}

/** Lets these pipelines go on. A number of lanes that was on its way is given up. */
export async function resumePipelines(
  database: Database,
  pipelines: readonly string[],
): Promise<readonly PauseChange[]> {
  const assignments = "paused_at = null, paused_by = null, pause_reason = null, lanes_wanted = null";
  return await change(database, "resuming", pipelines, "w.paused_at is not null", assignments, []);
}

async function change(
  database: Database,
  doing: string,
  pipelines: readonly string[],
  changes: string,
  assignments: string,
  values: readonly unknown[],
): Promise<readonly PauseChange[]> {
  const table = database.tables.pipelines;
  const rows = await transaction(database.pool, writeSettings(database, doing), (session) =>
    session.rows(
      `with w as (select name, paused_at from ${table} where name = any($1::text[]) order by name for update)
       update ${table} p set ${assignments}, updated_at = clock_timestamp() from w where p.name = w.name
       returning p.name, ${changes}`,
      [pipelines, ...values],
    ),
  );
  return rows
    .map((row) => ({ pipeline: row[0] ?? "", hasChanged: row[1] === "t" }))
    .sort((left, right) => left.pipeline.localeCompare(right.pipeline));
}
