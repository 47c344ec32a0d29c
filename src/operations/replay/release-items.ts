import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import type { Author } from "../audit/author.ts";
import { type Batch, resolve } from "../dead-letters/dead-letter-change.ts";
import { discardBatch } from "../dead-letters/dead-letter-discard.ts";
import type { MergePatch } from "../dead-letters/merge-patch.ts";
import { isId } from "../events/event-filter.ts";
import type { ItemState, PlanAction, PlanSubject } from "./frozen-plan.ts";
import { patchItems, writePatched } from "./patch-items.ts";
import type { PlanSources } from "./plan-sources.ts";
import { releaseDelivered } from "./release-delivered.ts";
import { replayBatch } from "./replay.ts";

/** An event of a plan that is about to be released. */
export interface DueItem {
  readonly seq: string;
  readonly pipeline: string;
  readonly source: string;
  readonly id: string;
  readonly was: Readonly<Record<string, string>>;
  readonly stratum: number;
}

interface Release {
  readonly id: string;
  readonly action: PlanAction;
  readonly subject: PlanSubject;
  readonly author: Author;
  readonly patch: MergePatch | null;
}

/** Items of one pipeline and source. */
export interface DueBatch {
  readonly pipeline: string;
  readonly source: string;
  readonly items: readonly DueItem[];
}

/** The changed ids, and why the others were skipped. */
export interface Released {
  readonly done: readonly string[];
  readonly otherwise: string;
  /** Individual reasons. */
  readonly reasons?: ReadonlyMap<string, string>;
}

/**
 * Applies the plan's action to these events and records it with each in the caller's transaction, so that neither
 * exists without the other. Events that have changed since the plan was created are skipped. Returns the skipped ones.
 */
export async function releaseItems(
  session: Session,
  database: Database,
  plan: Release,
  items: readonly DueItem[],
  sources: PlanSources,
): Promise<ReadonlySet<DueItem>> {
  const batches = Map.groupBy(items, ({ pipeline, source }) => JSON.stringify([pipeline, source]));
  const released = new Set<DueItem>();
  for (const some of batches.values()) {
    const { pipeline, source } = some[0]!;
    const batch = { pipeline, source, items: some };
    const { done, otherwise, reasons } =
      plan.subject === "dead"
        ? await changeDead(session, database, plan, batch, sources)
        : await releaseDelivered(session, database, plan, batch, sources);
    const isDone = new Set(done);
    for (const item of some) if (isDone.has(item.id)) released.add(item);
    await note(session, database, plan, some, ({ id }) => {
      if (!isDone.has(id)) return ["left", reasons?.get(id) ?? otherwise];
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
    released =
      plan.patch === null
        ? await (action === "replay" ? replayBatch : discardBatch)(session, holds, batch)
        : await replayPatched(session, database, { ...plan, patch: plan.patch }, batch);
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

/** Events that cannot be patched are skipped; the others get their new payload in the same step that sends them. */
async function replayPatched(
  session: Session,
  database: Database,
  { author, id, patch }: Release & { readonly patch: MergePatch },
  batch: Batch,
): Promise<Released> {
  const items = await patchItems(session, batch.source, batch.ids, patch);
  const fit = items.filter(({ problem }) => problem === null);
  const released = await replayBatch(session, database.tables.holds, { ...batch, ids: fit.map((it) => it.id) });
  const isDone = new Set(released.done);
  const sent = fit.filter((it) => isDone.has(it.id));
  await writePatched(session, database, sent, { ...batch, author, plan: id });
  const reasons = new Map(items.flatMap((it) => (it.problem === null ? [] : [[it.id, it.problem] as const])));
  return { ...released, reasons };
}

const CHANGED = "it has changed since the plan was created: it was replayed or discarded, or failed again";

/** Locks the letters, so that no concurrent change interferes. */
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
