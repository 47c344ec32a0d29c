import { errorFormSql } from "../postgres/error-form.ts";
import type { Database } from "../postgres/pool.ts";
import { statement } from "../postgres/transaction.ts";
import { choiceCondition, type DeadLetterChoice, deadLetterReadSettings } from "./dead-letter-choice.ts";

/** What a replay or a discard would touch, and what to know before. */
export interface ReplayPlan {
  readonly count: number;
  readonly keys: number;
  readonly byType: Readonly<Record<string, number>>;
  readonly bySource: Readonly<Record<string, number>>;
  readonly byError: Readonly<Record<string, number>>;
  /** Those whose later events wait behind them. */
  readonly parking: number;
  readonly warnings: readonly string[];
}

/** The rarest of many are summed up under one name. */
const NAMED_MAX = 50;

/** Reads only. */
export async function planReplay(database: Database, choice: DeadLetterChoice): Promise<ReplayPlan> {
  const { failedEvents, holds } = database.tables;
  const rows = await statement(
    database.pool,
    deadLetterReadSettings(database, "planning a replay"),
    `with chosen as materialized (
       select d.event_type, d.source_schema || '.' || d.source_table as source, d.event_key,
         ${errorFormSql("d.failure_reason")} as form, coalesce(h.parks and d.event_key is not null, false) as parks,
         d.event_key is not null and h.parks is not true as is_overtaken
       from ${failedEvents} d left join ${holds} h on h.pipeline = d.pipeline and h.event_id = d.original_event_id
         and h.state = 'dead'
       where ${choiceCondition(choice)})
     select 'count', null, count(*) from chosen
     union all select 'keys', null, count(distinct (source, event_key)) from chosen where event_key is not null
     union all select 'parking', null, count(*) from chosen where parks
     union all select 'overtaken', null, count(*) from chosen where is_overtaken
     union all select 'type', event_type, count(*) from chosen group by 2
     union all select 'source', source, count(*) from chosen group by 2
     union all select 'error', form, count(*) from chosen group by 2
     order by 1, 3 desc`,
  );
  const figure = (name: string) => Number(rows.find((row) => row[0] === name)?.[2] ?? 0);
  const counts = (name: string) =>
    summed(rows.filter((row) => row[0] === name).map((row) => [row[1] ?? "", Number(row[2])] as const));
  return {
    count: figure("count"),
    keys: figure("keys"),
    byType: counts("type"),
    bySource: counts("source"),
    byError: counts("error"),
    parking: figure("parking"),
    warnings: warningsOf(figure("parking"), figure("overtaken")),
  };
}

function warningsOf(parking: number, overtaken: number): string[] {
  return [
    ...(parking === 0 ? [] : [`${parking} hold their key back: what waits behind them follows in order after them`]),
    ...(overtaken === 0
      ? []
      : [`${overtaken} were skipped: later events of their keys are out already, so these come late, out of order`]),
  ];
}

export function summed(counts: readonly (readonly [string, number])[]): Record<string, number> {
  const named = counts.slice(0, NAMED_MAX);
  const rest = counts.slice(NAMED_MAX).reduce((sum, [, count]) => sum + count, 0);
  return Object.fromEntries(rest === 0 ? named : [...named, ["others", rest]]);
}
