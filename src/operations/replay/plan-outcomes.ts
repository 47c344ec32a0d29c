import { fingerprintSql } from "../../postgres/error-form.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { Row, Session } from "../../postgres/session.ts";
import type { EventSource } from "../event-source.ts";
import type { PlanStage } from "./frozen-plan.ts";
import type { RoundFailure } from "./plan-decision.ts";
import type { PlanSources } from "./plan-sources.ts";
import type { ItemState } from "./plan-states.ts";

/** What became of one event that was sent. */
interface Outcome {
  readonly state: ItemState;
  readonly reason: string | null;
  /** Set where it failed. */
  readonly failure: RoundFailure | null;
}

interface NotedOutcomes {
  readonly failures: readonly RoundFailure[];
  readonly done: number;
  readonly left: number;
}

const STILL_SENT: Outcome = { state: "sent", reason: null, failure: null };

/** Looks at what is on its way, and notes what has arrived or failed. Returns what has changed. */
export async function noteOutcomes(
  session: Session,
  tables: RelayTables,
  plan: { readonly id: string; readonly stage: PlanStage },
  sources: PlanSources,
): Promise<NotedOutcomes> {
  const groups = await session.rows(
    `select distinct pipeline, source from ${tables.replayItems} where plan = $1 and state = 'sent'`,
    [plan.id],
  );
  const failures: RoundFailure[] = [];
  const noted = { done: 0, left: 0 };
  for (const [pipeline, name] of groups) {
    const source = sources.waiting(name ?? "", pipeline ?? "");
    if (source === null) continue;
    const rows = await session.rows(outcomesSql(tables, source), [plan.id, pipeline, name]);
    const changed = rows
      .map((row) => ({ seq: row[0] ?? "", ...outcomeOf(row, plan.stage, source.isParked) }))
      .filter(({ state }) => state !== "sent");
    failures.push(...changed.flatMap(({ failure }) => failure ?? []));
    for (const { state } of changed) if (state === "done" || state === "left") noted[state] += 1;
    if (changed.length === 0) continue;
    await session.rows(
      `update ${tables.replayItems} i set state = c.state, reason = c.reason, changed_at = clock_timestamp()
       from unnest($2::bigint[], $3::text[], $4::text[]) as c (seq, state, reason)
       where i.plan = $1 and i.seq = c.seq and i.seq = any($2::bigint[]) and i.state = 'sent'`,
      [plan.id, changed.map(({ seq }) => seq), changed.map(({ state }) => state), changed.map(({ reason }) => reason)],
    );
  }
  return { failures, ...noted };
}

/** Columns in the order in which `outcomeOf` reads them. */
function outcomesSql({ failedEvents, holds, replayItems }: RelayTables, source: EventSource): string {
  const { delivered, givenUp, table } = source;
  const isOurs = [delivered, table.unsettled, ...(givenUp === null ? [] : [givenUp])].join(" or ");
  return `select i.seq, i.event_id, i.fingerprint, h.state, h.attempts, h.reason, ${fingerprintSql("h.reason")},
  d.resolved_at is null and d.last_failed_at >= i.changed_at, d.failure_reason, d.fingerprint,
  d.resolution = 'discarded' and d.resolved_at >= i.changed_at, d.resolved_by, t.is_delivered
from ${replayItems} i
left join ${holds} h on h.pipeline = i.pipeline and h.event_id = i.event_id
left join ${failedEvents} d on d.pipeline = i.pipeline and d.original_event_id = i.event_id
left join lateral (select ${delivered} as is_delivered from ${table.quotedName} t
  where ${table.id} = i.event_id::${table.idType} and (${isOurs})) t on true
where i.plan = $1 and i.state = 'sent' and i.pipeline = $2 and i.source = $3`;
}

/**
 * The hold is the witness: while it is there the event is on its way, and an attempt in it is a new failure. A row
 * without a hold was delivered, or was never held and still waits.
 */
function outcomeOf(row: Row, stage: PlanStage, isParked: boolean): Outcome {
  const [, id, was, hold, attempts, heldReason, heldForm, isDead, deadReason, deadForm, isDiscarded, by, delivered] =
    row;
  if (isDead === "t") return failed(id, deadReason, was === deadForm);
  if (isDiscarded === "t")
    return { state: "left", reason: `discarded meanwhile by ${by ?? "somebody"}`, failure: null };
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
  const why = reason ?? "no reason is known";
  return { state: "failed", reason: why, failure: { id: id ?? "", reason: why, isSame } };
}
