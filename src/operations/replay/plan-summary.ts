import { errorFormSql } from "../../postgres/error-form.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { Row } from "../../postgres/session.ts";
import { destinationSql } from "../pipelines/pipelines.ts";
import type { PlanAction, PlanBreakdown, PlanSubject } from "./frozen-plan.ts";
import { type Stratum, stratumOf, topStrata } from "./plan-strata.ts";

interface Summarized {
  readonly action: PlanAction;
  readonly subject: PlanSubject;
}

interface Summary {
  readonly count: number;
  readonly breakdown: PlanBreakdown;
  /** Events that park their keys. */
  readonly parking: number;
  readonly warnings: readonly string[];
  /** Largest first; the smaller ones combined. */
  readonly strata: readonly Stratum[];
}

/** The rarest of many names are combined. */
const NAMED_MAX = 50;

/** The items of a plan, as input of `summarize`. */
export function planItemsSql({ holds, replayItems }: RelayTables, plan: string): string {
  return `select i.pipeline, i.source, i.event_type, i.event_key, i.fingerprint, i.was ->> 'letter' as letter, h.parks
    from ${replayItems} i
    left join ${holds} h on h.pipeline = i.pipeline and h.event_id = i.event_id and h.state = 'dead'
    where i.plan = ${quoteLiteral(plan)}`;
}

/**
 * What a plan contains, with warnings for the decision. `items` selects pipeline, source, event_type, event_key,
 * fingerprint, letter and parks of each event.
 */
export async function summarize(
  ask: (text: string) => Promise<readonly Row[]>,
  tables: RelayTables,
  items: string,
  plan: Summarized,
): Promise<Summary> {
  const rows = await ask(summarySql(tables, items));
  const named = (name: string) => rows.filter((row) => row[0] === name);
  const figure = (name: string) => Number(named(name)[0]?.[2] ?? 0);
  const counts = (name: string) => summed(named(name).map((row) => [row[1] ?? "", Number(row[2])] as const));
  const [count, parking] = [figure("count"), figure("parking")];
  const figures = {
    count,
    parking,
    keyed: figure("keyed"),
    overtaken: figure("overtaken"),
    unknown: figure("unknown"),
  };
  const strata = named("stratum").map((row) =>
    stratumOf([...(JSON.parse(row[1] ?? "[]") as readonly (string | null)[]), row[2]]),
  );
  return {
    count,
    parking,
    breakdown: {
      keys: figure("keys"),
      byType: counts("type"),
      bySource: counts("source"),
      byError: counts("error"),
    },
    warnings: warningsOf(plan, figures),
    strata: topStrata(strata),
  };
}

function summed(counts: readonly (readonly [string, number])[]): Record<string, number> {
  const named = counts.slice(0, NAMED_MAX);
  const rest = counts.slice(NAMED_MAX).reduce((sum, [, count]) => sum + count, 0);
  return Object.fromEntries(rest === 0 ? named : [...named, ["others", rest]]);
}

const ERROR_FORM = errorFormSql({ reason: "d.failure_reason", key: "d.event_key" });

/** One example per fingerprint represents its error: normalizing all of them would take too long. */
const summarySql = ({ failedEvents }: RelayTables, items: string): string => `
with items as materialized (${items}),
errors as (select fingerprint, count(*) as count, min(letter) as letter from items
  where fingerprint is not null group by fingerprint),
strata as (select ${destinationSql("pipeline")} as destination, event_type, fingerprint, count(*) as count,
  min(letter) as letter from items group by 1, 2, 3)
select 'count', null, count(*) from items
union all select 'keys', null, count(distinct (source, event_key)) from items where event_key is not null
union all select 'keyed', null, count(*) from items where event_key is not null
union all select 'parking', null, count(*) from items where event_key is not null and parks
union all select 'overtaken', null, count(*) from items where event_key is not null and parks is not true
union all select 'unknown', null, coalesce(sum(e.count), 0) from errors e join ${failedEvents} d on d.id = e.letter::uuid
  where d.failure_reason like '%[PUBLISH_UNKNOWN]%'
union all select 'type', event_type, count(*) from items group by 2
union all select 'source', source, count(*) from items group by 2
union all select 'error', ${ERROR_FORM}, e.count from errors e join ${failedEvents} d on d.id = e.letter::uuid
union all select 'stratum', json_build_array(s.destination, s.event_type, s.fingerprint, ${ERROR_FORM})::text, s.count
  from strata s left join ${failedEvents} d on d.id = s.letter::uuid
order by 1, 3 desc, 2`;

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
      ...when(
        count > 0,
        `${count} ${count === 1 ? "was delivered and is" : "were delivered and are"} sent again: consumers without deduplication process them twice`,
      ),
      ...when(count > 0, `some destinations drop repeated ids: ${WINDOWS}; all others deliver them again`),
      ...when(
        keyed > 0,
        `${keyed} ${keyed === 1 ? "has" : "have"} a key whose later events may be delivered already: these arrive late, in order among themselves`,
      ),
    ];
  }
  const blocking = parking === 1 ? "blocks its key" : "block their keys";
  const held = `${blocking}: the events behind ${parking === 1 ? "it" : "them"}`;
  if (action === "discard") {
    return [
      ...when(count > 0, "discarded events are never sent"),
      ...when(parking > 0, `${parking} ${held} continue without ${parking === 1 ? "it" : "them"}`),
    ];
  }
  return [
    ...when(parking > 0, `${parking} ${held} follow in order after ${parking === 1 ? "it" : "them"}`),
    ...when(
      overtaken > 0,
      `${overtaken} ${overtaken === 1 ? "was" : "were"} skipped: later events of their keys are delivered already, so these arrive late, out of order`,
    ),
    ...when(
      unknown > 0,
      `${unknown} may be delivered already: the destination did not answer, and they are sent again`,
    ),
  ];
}
