import { errorFormSql } from "../../postgres/error-form.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { Session } from "../../postgres/session.ts";
import { summed } from "../replay-plan.ts";
import type { PlanAction, PlanBreakdown, PlanSubject } from "./frozen-plan.ts";

interface Summarized {
  readonly id: string;
  readonly action: PlanAction;
  readonly subject: PlanSubject;
}

/** What a plan touches and what to beware of, for those who decide about it. */
export async function summarize(
  session: Session,
  tables: RelayTables,
  plan: Summarized,
): Promise<{ readonly breakdown: PlanBreakdown; readonly warnings: readonly string[] }> {
  const rows = await session.rows(summarySql(tables), [plan.id]);
  const figure = (name: string) => Number(rows.find((row) => row[0] === name)?.[2] ?? 0);
  const counts = (name: string) =>
    summed(rows.filter((row) => row[0] === name).map((row) => [row[1] ?? "", Number(row[2])] as const));
  const figures = {
    keyed: figure("keyed"),
    parking: figure("parking"),
    overtaken: figure("overtaken"),
    unknown: figure("unknown"),
    count: figure("count"),
  };
  return {
    breakdown: {
      keys: figure("keys"),
      byType: counts("type"),
      bySource: counts("source"),
      byError: counts("error"),
    },
    warnings: warningsOf(plan, figures),
  };
}

/** An error is told by one example of its fingerprint: to take all of them apart would take its time. */
const summarySql = ({ failedEvents, holds, replayItems }: RelayTables): string => `
with items as materialized (
  select i.*, h.parks from ${replayItems} i
  left join ${holds} h on h.pipeline = i.pipeline and h.event_id = i.event_id and h.state = 'dead'
  where i.plan = $1),
errors as (select fingerprint, count(*) as count, min(was ->> 'letter') as letter from items
  where fingerprint is not null group by fingerprint)
select 'count', null, count(*) from items
union all select 'keys', null, count(distinct (source, event_key)) from items where event_key is not null
union all select 'keyed', null, count(*) from items where event_key is not null
union all select 'parking', null, count(*) from items where event_key is not null and parks
union all select 'overtaken', null, count(*) from items where event_key is not null and parks is not true
union all select 'unknown', null, coalesce(sum(e.count), 0) from errors e join ${failedEvents} d on d.id = e.letter::uuid
  where d.failure_reason like '%[PUBLISH_UNKNOWN]%'
union all select 'type', event_type, count(*) from items group by 2
union all select 'source', source, count(*) from items group by 2
union all select 'error', ${errorFormSql("d.failure_reason")}, e.count from errors e
  join ${failedEvents} d on d.id = e.letter::uuid
order by 1, 3 desc`;

interface Figures {
  readonly count: number;
  readonly keyed: number;
  readonly parking: number;
  readonly overtaken: number;
  readonly unknown: number;
}

const WINDOWS = "NATS JetStream for its duplicate window, SQS FIFO for 5 minutes, BullMQ as long as it keeps the job";

function warningsOf({ action, subject }: Summarized, figures: Figures): string[] {
  const { count, keyed, overtaken, parking, unknown } = figures;
  const when = (holds: boolean, warning: string) => (holds ? [warning] : []);
  if (subject === "delivered") {
    return [
      ...when(count > 0, `${count} were delivered and are sent again: whoever counts on each once gets them twice`),
      ...when(count > 0, `some destinations drop an id that comes again: ${WINDOWS}; all others deliver it again`),
      ...when(
        keyed > 0,
        `${keyed} have a key whose later events are out already: these come late, in order among themselves`,
      ),
    ];
  }
  const held = "hold their key back: what waits behind them follows in order after them";
  if (action === "discard") {
    return [
      ...when(count > 0, "what is discarded is never sent"),
      ...when(parking > 0, `${parking} ${held.replace("follows in order after them", "goes on without them")}`),
    ];
  }
  return [
    ...when(parking > 0, `${parking} ${held}`),
    ...when(
      overtaken > 0,
      `${overtaken} were skipped: later events of their keys are out already, so these come late, out of order`,
    ),
    ...when(
      unknown > 0,
      `${unknown} may have arrived already: the destination gave no answer, and they are sent again`,
    ),
  ];
}
