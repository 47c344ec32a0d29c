import { fingerprintSql } from "../../postgres/error-form.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { Row, Session } from "../../postgres/session.ts";
import type { EventSource } from "../events/event-source.ts";
import type { FrozenPlan, ItemState, PlanStage } from "./frozen-plan.ts";
import type { RoundFailure } from "./plan-decision.ts";
import type { PlanSources } from "./plan-sources.ts";
import { stratumFinder } from "./plan-strata.ts";

/** The outcome of one released event. */
interface Outcome {
  readonly state: Exclude<ItemState, "waiting">;
  readonly reason: string | null;
  /** Set when it failed. */
  readonly failure: Omit<RoundFailure, "stratum"> | null;
}

/** A released event whose state has changed. */
interface NotedOutcome {
  readonly stratum: number;
  readonly state: Exclude<ItemState, "waiting" | "sent">;
  readonly failure: RoundFailure | null;
}

const STILL_SENT: Outcome = { state: "sent", reason: null, failure: null };

/** Checks the events in flight, and records what was delivered or has failed. Returns the changes. */
export async function noteOutcomes(
  session: Session,
  tables: RelayTables,
  plan: Pick<FrozenPlan, "id" | "stage" | "strata">,
  sources: PlanSources,
): Promise<readonly NotedOutcome[]> {
  const groups = await session.rows(
    `select distinct pipeline, source from ${tables.replayItems} where plan = $1 and state = 'sent'`,
    [plan.id],
  );
  const stratumOf = stratumFinder(plan.strata);
  const noted: NotedOutcome[] = [];
  for (const [pipeline, name] of groups) {
    const source = sources.waiting(name ?? "", pipeline ?? "");
    if (source === null) continue;
    const rows = await session.rows(outcomesSql(tables, source), [plan.id, pipeline, name]);
    const changed = rows.flatMap((row) => {
      const { failure, reason, state } = outcomeOf(row, plan.stage, source.isParked);
      if (state === "sent") return [];
      const stratum = stratumOf(pipeline ?? "", row[13] ?? "", row[2] ?? null);
      return [{ seq: row[0] ?? "", state, reason, stratum, failure: failure && { ...failure, stratum } }];
    });
    if (changed.length === 0) continue;
    noted.push(...changed);
    await session.rows(
      `update ${tables.replayItems} i set state = c.state, reason = c.reason, changed_at = clock_timestamp()
       from unnest($2::bigint[], $3::text[], $4::text[]) as c (seq, state, reason)
       where i.plan = $1 and i.seq = c.seq and i.seq = any($2::bigint[]) and i.state = 'sent'`,
      [plan.id, changed.map(({ seq }) => seq), changed.map(({ state }) => state), changed.map(({ reason }) => reason)],
    );
  }
  return noted;
}

/** Columns in the order in which `outcomeOf` reads them. */
function outcomesSql({ failedEvents, holds, replayItems }: RelayTables, source: EventSource): string {
  const { delivered, givenUp, table } = source;
  const isOurs = [delivered, table.unsettled, ...(givenUp === null ? [] : [givenUp])].join(" or ");
  return `select i.seq, i.event_id, i.fingerprint, h.state, h.attempts, h.reason, 
  case when h.attempts > 0 then ${fingerprintSql({ reason: "h.reason", key: "i.event_key" })} end,
  d.resolved_at is null and d.last_failed_at >= i.changed_at, d.failure_reason, d.fingerprint,
  d.resolution = 'discarded' and d.resolved_at >= i.changed_at, d.resolved_by, t.is_delivered,
  i.event_type
from ${replayItems} i
left join ${holds} h on h.pipeline = i.pipeline and h.event_id = i.event_id
left join ${failedEvents} d on d.pipeline = i.pipeline and d.original_event_id = i.event_id
left join lateral (select ${delivered} as is_delivered from ${table.quotedName} t
  where ${table.id} = i.event_id::${table.idType} and (${isOurs})) t on true
where i.plan = $1 and i.state = 'sent' and i.pipeline = $2 and i.source = $3`;
}

/**
 * The hold decides: while it exists the event is in flight, and an attempt in it is a new failure. A row without a hold
 * was delivered, or never held and still waits.
 */
function outcomeOf(row: Row, stage: PlanStage, isParked: boolean): Outcome {
  const [, id, was, hold, attempts, heldReason, heldForm, isDead, deadReason, deadForm, isDiscarded, by, delivered] =
    row;
  if (isDead === "t") return failed(id, deadReason, was === deadForm);
  if (isDiscarded === "t")
    return { state: "left", reason: `discarded meanwhile by ${by ?? "an unknown author"}`, failure: null };
  if (hold != null) {
    if (hold === "dead" || Number(attempts) === 0) return STILL_SENT;
    const isSame = was !== null && was === heldForm;
    return isSame || stage !== "rest" ? failed(id, heldReason, isSame) : STILL_SENT;
  }
  if (delivered === "t") return { state: "done", reason: null, failure: null };
  if (delivered === "f") return STILL_SENT;
  return { state: "done", reason: isParked ? null : "its row was deleted since", failure: null };
}

function failed(id: string | null | undefined, reason: string | null | undefined, isSame: boolean): Outcome {
  const why = reason ?? "unknown reason";
  return { state: "failed", reason: why, failure: { id: id ?? "", reason: why, isSame } };
}
