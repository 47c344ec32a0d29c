import type { Database } from "../../postgres/pool.ts";
import { statement } from "../../postgres/transaction.ts";
import { choiceCondition, type DeadLetterChoice, deadLetterReadSettings } from "../dead-letters/dead-letter-choice.ts";
import { withWholeGroup } from "../dead-letters/letter-group.ts";
import type { PlanAction, PlanBreakdown } from "./frozen-plan.ts";
import type { Stratum } from "./plan-strata.ts";
import { summarize } from "./plan-summary.ts";

/** What a replay or a discard would change, with warnings. */
export interface ReplayPlan extends PlanBreakdown {
  readonly count: number;
  /** Events that park their keys. */
  readonly parking: number;
  readonly warnings: readonly string[];
  /** By destination, error and type, largest first; the smaller ones combined. */
  readonly strata: readonly Stratum[];
}

/** Read-only. */
export async function planReplay(
  database: Database,
  choice: DeadLetterChoice,
  action: PlanAction,
): Promise<ReplayPlan> {
  const { failedEvents, holds } = database.tables;
  const items = `select d.pipeline, d.source_schema || '.' || d.source_table as source, d.event_type, d.event_key,
      d.fingerprint, d.id::text as letter, h.parks
    from ${failedEvents} d left join ${holds} h on h.pipeline = d.pipeline and h.event_id = d.original_event_id
      and h.state = 'dead'
    where ${choiceCondition(await withWholeGroup(database, choice))}`;
  const settings = deadLetterReadSettings(database, "planning a replay");
  const ask = (text: string) => statement(database.pool, settings, text);
  const { breakdown, ...summary } = await summarize(ask, database.tables, items, { action, subject: "dead" });
  return { ...breakdown, ...summary };
}
