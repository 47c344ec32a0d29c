import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import { endOverrides } from "./destination-overrides.ts";

/** Whether a pause or resume changed a pipeline. */
export interface PauseChange {
  readonly pipeline: string;
  /** False when it was in this state already. */
  readonly hasChanged: boolean;
}

/**
 * Pauses these pipelines: every instance stops claiming within three seconds, finishes events in flight and keeps its
 * lanes. The pause survives restarts and lasts until it is resumed. Unknown names are left out of the result.
 * `handsOver` also releases the lanes, so that another deployment on the table can acquire them.
 */
export async function pausePipelines(
  database: Database,
  pipelines: readonly string[],
  author: Author & { readonly handsOver?: boolean },
): Promise<readonly PauseChange[]> {
  return await transaction(database.pool, writeSettings(database, "to pause"), (session) =>
    pauseIn(session, database, pipelines, author),
  );
}

/** Resumes these pipelines. Cancels a pending change of the lane count. */
export async function resumePipelines(
  database: Database,
  pipelines: readonly string[],
  author: Author,
): Promise<readonly PauseChange[]> {
  return await transaction(database.pool, writeSettings(database, "to resume"), async (session) => {
    const changes = await resumeIn(session, database, pipelines, author);
    await endOverrides(session, database, "pause");
    return changes;
  });
}

type PauseAuthor = Author & { readonly handsOver?: boolean; readonly detail?: object };

/** Like `pausePipelines`, in the caller's transaction. */
export async function pauseIn(
  session: Session,
  database: Database,
  pipelines: readonly string[],
  author: PauseAuthor,
): Promise<readonly PauseChange[]> {
  const handsOver = author.handsOver === true ? ", lanes_wanted = p.lanes" : "";
  const assignments = `paused_at = coalesce(p.paused_at, clock_timestamp()), paused_by = $2, pause_reason = $3${handsOver}`;
  const values = [author.by, author.reason ?? null];
  return await change(session, database, "pause", pipelines, author, {
    changes: "w.paused_at is null",
    assignments,
    values,
  });
}

/** Like `resumePipelines`, in the caller's transaction. */
export async function resumeIn(
  session: Session,
  database: Database,
  pipelines: readonly string[],
  author: PauseAuthor,
): Promise<readonly PauseChange[]> {
  const assignments = "paused_at = null, paused_by = null, pause_reason = null, lanes_wanted = null";
  const changes = "w.paused_at is not null";
  return await change(session, database, "resume", pipelines, author, { changes, assignments, values: [] });
}

interface Change {
  /** SQL condition over the row `w`: whether the action changes it. */
  readonly changes: string;
  readonly assignments: string;
  readonly values: readonly unknown[];
}

async function change(
  session: Session,
  database: Database,
  action: "pause" | "resume",
  pipelines: readonly string[],
  author: PauseAuthor,
  { assignments, changes, values }: Change,
): Promise<readonly PauseChange[]> {
  const table = database.tables.pipelines;
  const rows = await session.rows(
    `with w as (select name, paused_at from ${table} where name = any($1::text[]) order by name for update)
     update ${table} p set ${assignments}, updated_at = clock_timestamp() from w where p.name = w.name
     returning p.name, ${changes}`,
    [pipelines, ...values],
  );
  const changed = rows
    .map((row) => ({ pipeline: row[0] ?? "", hasChanged: row[1] === "t" }))
    .sort((left, right) => left.pipeline.localeCompare(right.pipeline));
  const { detail = {} } = author;
  for (const { hasChanged, pipeline: target } of changed) {
    if (hasChanged) await noteAction(session, database, author, { action, target, detail });
  }
  return changed;
}
