import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import type { Author } from "../author.ts";
import { resolve } from "../dead-letter-change.ts";
import { discardBatch } from "../dead-letter-discard.ts";
import { isId } from "../event-filter.ts";
import { replayBatch } from "../replay.ts";
import type { PlanAction, PlanSubject } from "./frozen-plan.ts";
import type { PlanSources } from "./plan-sources.ts";
import type { ItemState } from "./plan-states.ts";
import { releaseDelivered } from "./release-delivered.ts";

/** An event of a plan that is about to be touched. */
export interface DueItem {
  readonly seq: string;
  readonly pipeline: string;
  readonly source: string;
  readonly id: string;
  readonly was: Readonly<Record<string, string>>;
}

interface Release {
  readonly id: string;
  readonly action: PlanAction;
  readonly subject: PlanSubject;
  readonly author: Author;
}

/** Items of one pipeline and source. */
export interface DueBatch {
  readonly pipeline: string;
  readonly source: string;
  readonly items: readonly DueItem[];
}

/** Which of them were changed, and why the others are left. */
export interface Released {
  readonly done: readonly string[];
  readonly otherwise: string;
}

/**
 * Does with these events what the plan says, and notes it with each: one transaction, the caller's, so that neither is
 * ever true without the other. What is no longer as the plan has found it is left alone. Returns how many were not left.
 */
export async function releaseItems(
  session: Session,
  database: Database,
  plan: Release,
  items: readonly DueItem[],
  sources: PlanSources,
): Promise<number> {
  const batches = Map.groupBy(items, ({ pipeline, source }) => JSON.stringify([pipeline, source]));
  let released = 0;
  for (const some of batches.values()) {
    const { pipeline, source } = some[0]!;
    const batch = { pipeline, source, items: some };
    const { done, otherwise } =
      plan.subject === "dead"
        ? await changeDead(session, database, plan, batch, sources)
        : await releaseDelivered(session, database, plan, batch, sources);
    const isDone = new Set(done);
    released += isDone.size;
    await note(session, database, plan, some, ({ id }) => {
      if (!isDone.has(id)) return ["left", otherwise];
      return [plan.action === "discard" ? "done" : "sent", null];
    });
  }
  return released;
}

async function changeDead(
  session: Session,
  database: Database,
  plan: Release,
  { items, pipeline, source: name }: DueBatch,
  sources: PlanSources,
): Promise<Released> {
  const { holds } = database.tables;
  const ids = await unchanged(session, database, pipeline, items);
  const source = sources.waiting(name, pipeline);
  const { action, author } = plan;
  let released: Released;
  if (source !== null) {
    const batch = { source, pipeline, ids: ids.filter((id) => isId(source.table.idType, id)) };
    released = await (action === "replay" ? replayBatch : discardBatch)(session, holds, batch);
  } else if (action === "discard") {
    await session.rows(`delete from ${holds} where pipeline = $1 and event_id = any($2::text[]) and state = 'dead'`, [
      pipeline,
      ids,
    ]);
    released = { done: ids, otherwise: CHANGED };
  } else released = { done: [], otherwise: sources.whyNot(name) };
  const resolution = action === "replay" ? "replayed" : "discarded";
  await resolve(session, database, pipeline, released.done, { author, resolution, plan: plan.id });
  return ids.length === items.length ? released : { ...released, otherwise: `${CHANGED}; or ${released.otherwise}` };
}

const CHANGED = "it is no longer as the plan found it: somebody replayed or discarded it, or it failed again";

/** Locked, so that nobody else decides about them meanwhile. */
async function unchanged(
  session: Session,
  { tables }: Database,
  pipeline: string,
  items: readonly DueItem[],
): Promise<readonly string[]> {
  const rows = await session.rows(
    `select d.original_event_id from ${tables.failedEvents} d
     join unnest($2::text[], $3::timestamptz[]) as i (event_id, last_failed_at) on d.original_event_id = i.event_id
     where d.pipeline = $1 and d.original_event_id = any($2::text[]) and d.resolved_at is null and d.last_failed_at = i.last_failed_at
     order by d.original_event_id for update of d`,
    [pipeline, items.map(({ id }) => id), items.map(({ was }) => was.lastFailedAt ?? null)],
  );
  return rows.map((row) => row[0] ?? "");
}

async function note(
  session: Session,
  { tables }: Database,
  { id }: Release,
  items: readonly DueItem[],
  noted: (item: DueItem) => readonly [ItemState, string | null],
): Promise<void> {
  const notes = items.map(noted);
  await session.rows(
    `update ${tables.replayItems} i set state = c.state, reason = c.reason, changed_at = clock_timestamp()
     from unnest($2::bigint[], $3::text[], $4::text[]) as c (seq, state, reason)
     where i.plan = $1 and i.seq = c.seq and i.seq = any($2::bigint[]) and i.state = 'waiting'`,
    [id, items.map(({ seq }) => seq), notes.map(([state]) => state), notes.map(([, reason]) => reason)],
  );
}
