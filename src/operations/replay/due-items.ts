import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { Session } from "../../postgres/session.ts";
import type { FrozenPlan, PlanStage } from "./frozen-plan.ts";
import { stratumArrays, stratumFinder, stratumJoinSql } from "./plan-strata.ts";
import type { DueItem } from "./release-items.ts";

/** Candidates that are considered per round: a long sequence of one key must not hide all others. */
const LOOK_AHEAD = 5_000;

interface Room {
  readonly stage: PlanStage;
  readonly room: number;
  /** Per stratum. */
  readonly rooms: readonly number[];
}

/**
 * The first event of each key whose earlier ones have settled, up to the limit per stratum. Before the last stage all
 * waiting events are considered, since the only events of a stratum may be the last of the plan.
 */
export async function dueItems(
  session: Session,
  { replayItems }: RelayTables,
  { action, id, strata }: FrozenPlan,
  { room, rooms, stage }: Room,
): Promise<readonly DueItem[]> {
  const inTurn =
    action === "discard"
      ? "true"
      : `(r.event_key is null or r.rank = 1 and (r.pipeline, r.event_key) not in (
         select s.pipeline, s.event_key from ${replayItems} s
         where s.plan = $1 and s.state = 'sent' and s.event_key is not null))`;
  const looked = stage === "rest" ? `limit ${LOOK_AHEAD}` : "";
  const rows = await session.rows(
    `with next as materialized (
       select seq, pipeline, source, event_id, event_key, event_type, fingerprint, was from ${replayItems}
       where plan = $1 and state = 'waiting' order by seq ${looked}),
     ranked as (select n.*, row_number() over (partition by pipeline, event_key order by seq) as rank from next n),
     turn as (select r.*, coalesce(k.place, ${strata.length}) as stratum from ranked r ${stratumJoinSql("r", "k", 2)}
       where ${inTurn}),
     placed as (select t.*, row_number() over (partition by stratum order by seq) as place from turn t)
     select p.seq, p.pipeline, p.source, p.event_id, p.was::text, p.stratum - 1 from placed p
     where p.place <= ($5::bigint[])[p.stratum] order by p.seq limit ${room}`,
    [id, ...stratumArrays(strata), rooms],
  );
  return rows.map((row) => ({
    seq: row[0] ?? "",
    pipeline: row[1] ?? "",
    source: row[2] ?? "",
    id: row[3] ?? "",
    was: JSON.parse(row[4] ?? "{}") as Record<string, string>,
    stratum: Number(row[5]),
  }));
}

/** Events behind one that failed again would overtake it, so they are skipped. Returns how many per stratum. */
export async function leaveFollowers(
  session: Session,
  { replayItems }: RelayTables,
  { id, strata }: FrozenPlan,
): Promise<readonly { readonly stratum: number; readonly count: number }[]> {
  const rows = await session.rows(
    `with left_alone as (
       update ${replayItems} w set state = 'left', reason = 'an earlier event of its key failed again',
         changed_at = clock_timestamp()
       where w.plan = $1 and w.state = 'waiting' and w.event_key is not null and (w.pipeline, w.event_key) in (
         select f.pipeline, f.event_key from ${replayItems} f where f.plan = $1 and f.state = 'failed')
       returning w.pipeline, w.event_type, w.fingerprint)
     select pipeline, event_type, fingerprint, count(*) from left_alone group by 1, 2, 3`,
    [id],
  );
  const stratumOf = stratumFinder(strata);
  return rows.map(([pipeline, type, group, count]) => ({
    stratum: stratumOf(pipeline ?? "", type ?? "", group ?? null),
    count: Number(count),
  }));
}
