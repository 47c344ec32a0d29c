import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { PARKED_COLUMNS } from "../../sources/postgres/log/log-kind.ts";
import { copySql } from "../../sources/postgres/tail/table-log.sql.ts";
import { noteActionOfEach } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import { notifyHoldsChanged } from "../dead-letters/dead-letter-change.ts";
import { isId } from "../events/event-filter.ts";
import type { EventSource } from "../events/event-source.ts";
import type { PlanSources } from "./plan-sources.ts";
import type { DueBatch, Released } from "./release-items.ts";

const OTHERWISE = "its row is gone, or it is waiting or held already";
const REASON = "An operator replays it.";

/**
 * Makes delivered events wait again. Each gets a hold in the same transaction: the relay then fetches exactly these, in
 * order, and new events of their keys wait behind them.
 */
export async function releaseDelivered(
  session: Session,
  database: Database,
  plan: { readonly id: string; readonly author: Author },
  batch: DueBatch,
  sources: PlanSources,
): Promise<Released> {
  const { pipeline, source: name } = batch;
  const source = sources.waiting(name, pipeline);
  if (source === null) return { done: [], otherwise: sources.whyNot(name) };
  const done = source.isParked
    ? await copyFromLog(session, database, batch, sources)
    : await unmarkRows(session, database, batch, source);
  await noteActionOfEach(session, database, plan.author, { action: "replay", target: plan.id }, done);
  await notifyHoldsChanged(session, database, pipeline);
  return { done, otherwise: OTHERWISE };
}

async function unmarkRows(
  session: Session,
  database: Database,
  { items, pipeline }: DueBatch,
  { delivered, order, table, unmark }: EventSource,
): Promise<readonly string[]> {
  const ids = items.map(({ id }) => id).filter((id) => isId(table.idType, id));
  const wanted = `${table.id} = any($1::text[]::${table.idType}[])`;
  const rows = await session.rows(
    `select ${table.id}::text, ${table.key} from ${table.quotedName} t where ${wanted} and ${delivered}
     order by ${order}, ${table.id} for update of t`,
    [ids],
  );
  const events = rows.map(([id, key]) => [id ?? "", key ?? null] as const);
  const held = await hold(session, database, pipeline, events);
  await session.rows(`update ${table.quotedName} t set ${unmark} where ${wanted} and ${delivered}`, [held]);
  return held;
}

/** The log stays unchanged: copies of its rows wait beside it, as for failed events. */
async function copyFromLog(
  session: Session,
  database: Database,
  { items, pipeline }: DueBatch,
  sources: PlanSources,
): Promise<readonly string[]> {
  const log = sources.log(pipeline);
  if (log === null) return [];
  const positions = items.map(({ was }) => Number(was.position));
  const select = `${copySql(log.shape, positions)} and ${log.events.delivered}`;
  const columns = PARKED_COLUMNS.join(", ");
  const rows = await session.rows(
    `insert into ${database.tables.parked} (pipeline, ${columns})
     select $1::text, ${PARKED_COLUMNS.map((column) => `r.${column}`).join(", ")} from (${select}) as r (${columns})
     on conflict (pipeline, event_id) do nothing returning event_id, event_key, place`,
    [pipeline],
  );
  const ordered = [...rows].sort((left, right) => Number(left[2]) - Number(right[2]));
  const events = ordered.map(([id, key]) => [id ?? "", key ?? null] as const);
  return await hold(session, database, pipeline, events);
}

/**
 * Makes events due one after the other, in the given order. One that is held already stays unchanged, and is not
 * returned.
 */
async function hold(
  session: Session,
  { tables }: Database,
  pipeline: string,
  events: readonly (readonly [id: string, key: string | null])[],
): Promise<readonly string[]> {
  const hash = `hashtextextended(coalesce(e.key, e.id) collate "C", 0) & 9223372036854775807`;
  const rows = await session.rows(
    `insert into ${tables.holds} (pipeline, lane, event_id, event_key, state, parks, attempts, next_at, reason)
     select p.name, mod(${hash}, p.lanes::bigint), e.id, e.key, 'retrying', e.key is not null, 0,
       clock_timestamp() + e.rank * interval '1 millisecond', $4
     from unnest($2::text[], $3::text[]) with ordinality as e (id, key, rank) join ${tables.pipelines} p on p.name = $1
     on conflict (pipeline, event_id) do nothing returning event_id`,
    [pipeline, events.map(([id]) => id), events.map(([, key]) => key), REASON],
  );
  return rows.map((row) => row[0] ?? "");
}
