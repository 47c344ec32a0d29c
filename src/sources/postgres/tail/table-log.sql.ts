import type { TypeRule } from "../../../ports/queue-store.ts";
import { quoteLiteral } from "../../../postgres/identifiers.ts";
import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import { typeCondition } from "../../../postgres/type-condition.ts";
import { armsOf, filterConditions, isBeginning, type TailScope, tableSql } from "./tail-scope.ts";
import type { TailShape } from "./tail-shape.ts";
import type { Stretch } from "./tail-stretch.ts";
import { WHOLE, walkedSql } from "./walked.ts";

/**
 * Returns one row: the number of the pipeline's unread rows, at most one more than `max`, and the age of the oldest.
 */
export function backlogTailSql(scope: TailScope, stretches: readonly Stretch[], max: number): string {
  const { createdAt } = scope.shape.events;
  const parts = stretches.map((stretch) => {
    const rows = isBeginning(stretch.difference)
      ? walkedSql(scope, stretch, WHOLE, Number.MAX_SAFE_INTEGER)
      : `select * from (${armsOf(scope, stretch.difference, stretch.after).join("\n  union all ")}) u offset 0`;
    const conditions = filterConditions(scope, stretch.lanes);
    return `(select ${createdAt} as created_at from (${rows}) t
  ${conditions.length > 0 ? `where ${conditions.join("\n    and ")}` : ""} limit ${max + 1})`;
  });
  return `select count(*), extract(epoch from clock_timestamp() - min(w.created_at)) * 1000
from (select * from (${parts.join("\nunion all ")}) p limit ${max + 1}) w`;
}

const COUNT_MAX = 1_000;
const TYPES_MAX = 1_000;
const NEWEST = 10_000;

/** Types among the newest rows that match no rule. */
export function newestUnroutedSql(
  { events, position }: TailShape,
  ruleLists: readonly (readonly TypeRule[])[],
): string {
  const unmatched = ruleLists.map((rules) => typeCondition(events, rules, "unmatched")).join(" and ");
  return `select type, least(count(*), ${COUNT_MAX}) from (
  select ${events.eventType} as type from (
    select * from ${events.quotedName} t order by ${position} desc limit ${NEWEST}) t
  where ${unmatched || "true"}) u
group by type order by type limit ${TYPES_MAX}`;
}

/**
 * The current snapshot, the first position written at a time or later (null without one), and the server's incarnation.
 */
export function startSql(scope: TailScope, since: string | null): string {
  const { events, position } = scope.shape;
  const first = `(select min(${position} + 0) from ${tableSql(scope)}
  where ${events.createdAt} >= ${quoteLiteral(since ?? "")}::timestamptz)`;
  return `select pg_current_snapshot()::text, ${since === null ? "null" : first}, ${SERVER_INCARNATION}`;
}

/** Selects rows by their positions, with the columns of PARKED_COLUMNS. */
export function copySql(shape: TailShape, positions: readonly number[]): string {
  const { events, position } = shape;
  const columns = [
    `${position}::numeric`,
    `${events.id}::text`,
    events.eventType,
    events.key,
    events.payloadBytes,
    headersSql(shape),
    events.correlationId,
    events.createdAt,
  ];
  return `select ${columns.join(", ")} from ${events.quotedName} t
where ${position} = any('{${positions.join(",")}}'::bigint[])`;
}

/**
 * The headers including the trace columns, as the event has them when it is read: a traceparent in the headers wins.
 * They are joined as text, because json accepts values that jsonb does not.
 */
function headersSql({ events }: TailShape): string {
  const { headersText, traceText } = events;
  if (traceText === "null") return `${headersText}::json`;
  const trace = `jsonb_strip_nulls(jsonb_build_object('traceparent', split_part(${traceText}, chr(10), 1),
    'tracestate', nullif(split_part(${traceText}, chr(10), 2), '')))::text`;
  const hasTrace = `coalesce(split_part(${traceText}, chr(10), 1), '') <> ''`;
  if (headersText === "null") return `(case when ${hasTrace} then ${trace} end)::json`;
  const text = `btrim(${headersText}, E' \\t\\r\\n')`;
  return `(case when not ${hasTrace} then ${headersText}
    when ${headersText} is null or ${text} in ('null', '{}') then ${trace}
    when left(${text}, 1) <> '{' or ${text} ~ '"traceparent"\\s*:' then ${headersText}
    else left(${text}, -1) || ', ' || substr(${trace}, 2) end)::json`;
}
