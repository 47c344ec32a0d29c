import { errorFormSql } from "../../postgres/error-form.ts";
import type { Database } from "../../postgres/pool.ts";
import { statement } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../events/event-source.ts";
import { isoSql } from "../events/event-time.ts";
import { destinationSql } from "../pipelines/pipelines.ts";
import { choiceCondition, type DeadLetterChoice } from "./dead-letter-choice.ts";
import { withWholeGroup } from "./letter-group.ts";

/** Dead letters with the same normalized error. */
export interface DeadLetterGroup {
  readonly group: string;
  /** The error without the parts that differ per event. */
  readonly error: string;
  readonly count: number;
  /** From the sample; so are sources and types. */
  readonly keys: number;
  readonly sources: readonly string[];
  readonly types: readonly string[];
  /** Size of the sample: the newest letters; all of a small group. */
  readonly sampled: number;
  /** When the first of them became a dead letter. */
  readonly firstFailedAt: string | null;
  readonly lastFailedAt: string | null;
  /** The newest letter: its event, its original error, and the HTTP status in it. */
  readonly exampleId: string;
  readonly example: string;
  readonly status: number | null;
  /** From the sample. */
  readonly destinations: readonly string[];
  /** New dead letters in each of equal spans from the first to the last. */
  readonly histogram: readonly number[];
}

const GROUPS_MAX = 200;
const NAMES_MAX = 20;
/** Letters that are read in full, over all groups. The index alone gives counts and times. */
const SAMPLED_MAX = 2_000;
const SAMPLED_MIN = 20;
const SPANS = 24;

/** The most frequent errors first. */
export async function groupDeadLetters(
  database: Database,
  choice: DeadLetterChoice,
): Promise<readonly DeadLetterGroup[]> {
  const settings = operationReadSettings(database, "grouping the dead letters");
  const condition = choiceCondition(await withWholeGroup(database, choice));
  const rows = await statement(database.pool, settings, groupsSql(database.tables.failedEvents, condition));
  return rows.map((row) => ({
    group: row[0] ?? "",
    error: row[1] ?? "",
    count: Number(row[2]),
    keys: Number(row[3]),
    sources: JSON.parse(row[4] ?? "[]") as string[],
    types: JSON.parse(row[5] ?? "[]") as string[],
    sampled: Number(row[6]),
    firstFailedAt: row[7] ?? null,
    lastFailedAt: row[8] ?? null,
    exampleId: row[9] ?? "",
    histogram: JSON.parse(row[10] ?? "[]") as number[],
    example: row[11] ?? "",
    status: statusIn(row[11] ?? ""),
    destinations: JSON.parse(row[12] ?? "[]") as string[],
  }));
}

/** In the wording of the HTTP destination. */
function statusIn(reason: string): number | null {
  const [, status] = / answered ([1-9]\d\d)\b/.exec(reason) ?? [];
  return status === undefined ? null : Number(status);
}

function groupsSql(failedEvents: string, condition: string): string {
  const names = (column: string) => `to_json((array_agg(distinct ${column}))[1:${NAMES_MAX}])`;
  return `with groups as materialized (
  select d.fingerprint, count(*) as count, min(d.last_failed_at) as first, max(d.last_failed_at) as last
  from ${failedEvents} d where ${condition} group by 1 order by 2 desc, 1 limit ${GROUPS_MAX}
)
select g.fingerprint, s.form, g.count, s.keys, s.sources, s.types, s.sampled, ${isoSql("g.first")}, ${isoSql("g.last")}, s.example, c.died,
  s.example_reason, s.destinations
from groups g
cross join lateral (select array(select g.first + (g.last - g.first) * n / ${SPANS} from generate_series(0, ${SPANS - 1}) n) as starts) b
cross join lateral (
  select json_agg(coalesce(c.died, 0) order by n) as died from generate_series(1, ${SPANS}) n
  left join (select width_bucket(d.last_failed_at, b.starts) as span, count(*) as died
    from ${failedEvents} d where ${condition} and d.fingerprint = g.fingerprint group by 1) c on c.span = n) c
cross join lateral (
  select (array_agg(${errorFormSql({ reason: "d.failure_reason", key: "d.event_key" })}) filter (where d.n = 1))[1] as form, count(*) as sampled,
    (array_agg(d.original_event_id) filter (where d.n = 1))[1] as example,
    (array_agg(d.failure_reason) filter (where d.n = 1))[1] as example_reason,
    count(distinct (d.source, d.event_key)) filter (where d.event_key is not null) as keys,
    ${names("d.source")} as sources, ${names("d.event_type")} as types,
    ${names(destinationSql("d.pipeline"))} as destinations
  from (select row_number() over (order by d.last_failed_at desc, d.id desc) as n, d.failure_reason, d.original_event_id,
      d.source_schema || '.' || d.source_table as source, d.event_key, d.event_type, d.pipeline
    from ${failedEvents} d where ${condition} and d.fingerprint = g.fingerprint
    order by d.last_failed_at desc, d.id desc
    limit (select greatest(${SAMPLED_MIN}, ${SAMPLED_MAX} / count(*)) from groups)) d) s
order by g.count desc, g.fingerprint`;
}
