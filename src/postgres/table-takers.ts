import type { TypeFilter } from "../ports/queue-store.ts";
import { displayTable, quoteLiteral, type TableName } from "./identifiers.ts";
import type { Database } from "./pool.ts";
import type { Row } from "./session.ts";
import { glance } from "./transaction.ts";
import type { Taker } from "./type-condition.ts";

/** Which pipelines read which events of one table. */
export interface TableTakers {
  /** In order: an event belongs to the first pipeline that matches it. */
  readonly takers: readonly Taker[];
  /** Pipelines of the table that read nothing any more: their service runs with other routes. */
  readonly retired: readonly string[];
  /** Pipelines with unknown routes: an older program registered them and does not run now. */
  readonly unknown: readonly string[];
}

/**
 * Uses the filters of the living instances, and for a pipeline without any, the last reported filter. Living ones come
 * first: an event that they match waits for no other pipeline.
 */
export async function tableTakers(database: Database, table: TableName): Promise<TableTakers> {
  const context = database.errorContext("reading the type filters", displayTable(table));
  const rows = await glance(database.pool, context, database.timeouts.statementMs, takersSql(database, table));
  return takersOf(rows.map(knownTaker));
}

/** The same for all tables, by `schema.table`. */
export async function takersByTable(database: Database): Promise<ReadonlyMap<string, TableTakers>> {
  const context = database.errorContext("reading the type filters");
  const rows = await glance(database.pool, context, database.timeouts.statementMs, takersSql(database));
  const byTable = Map.groupBy(rows, (row) => displayTable({ schema: row[4] ?? "", table: row[5] ?? "" }));
  return new Map([...byTable].map(([table, ofTable]) => [table, takersOf(ofTable.map(knownTaker))]));
}

function knownTaker(row: Row): KnownTaker {
  return {
    pipeline: row[0] ?? "",
    isServed: row[1] === "t",
    takes: row[2] == null ? undefined : (JSON.parse(row[2]) as TypeFilter),
    isServiceAlive: row[3] === "t",
  };
}

/** Which events one pipeline reads, as reported by an instance that serves it, else by the last one; null for all. */
export async function pipelineTakes(database: Database, pipeline: string): Promise<TypeFilter> {
  const { instances, pipelines } = database.tables;
  const context = database.errorContext(`reading the type filter of ${pipeline}`);
  const living = `select i.takes -> p.name from ${instances} i
    where p.name = any(i.pipelines) and i.alive_until > clock_timestamp() order by i.joined_at desc limit 1`;
  const text = `select coalesce((${living}), p.takes)::text from ${pipelines} p where p.name = ${quoteLiteral(pipeline)}`;
  const [row] = await glance(database.pool, context, database.timeouts.statementMs, text);
  return JSON.parse(row?.[0] ?? "null") as TypeFilter;
}

interface KnownTaker {
  readonly pipeline: string;
  readonly isServed: boolean;
  readonly takes: TypeFilter | undefined;
  /** Whether the service that served it last is running. */
  readonly isServiceAlive: boolean;
}

/** Expects a row for each pipeline and each different filter of the instances that serve it. */
export function takersOf(rows: readonly KnownTaker[]): TableTakers {
  const isAlone = new Set(rows.map(({ pipeline }) => pipeline)).size === 1;
  const isAnyServed = rows.some(({ isServed }) => isServed);
  const retired = rows.filter(({ isServed, isServiceAlive }) => isAnyServed && !isServed && isServiceAlive);
  const current = rows.filter((row) => !retired.includes(row));
  const takers = current.flatMap(({ pipeline, takes }): Taker[] => {
    if (takes !== undefined) return [{ pipeline, takes }];
    // Without a filter, a single pipeline reads everything, as in older versions.
    return isAlone ? [{ pipeline, takes: null }] : [];
  });
  const known = new Set(takers.map(({ pipeline }) => pipeline));
  return {
    takers,
    retired: retired.map(({ pipeline }) => pipeline),
    unknown: [...new Set(current.map(({ pipeline }) => pipeline))].filter((pipeline) => !known.has(pipeline)),
  };
}

/** A pipeline whose service is unknown counts as one of the running service. */
const takersSql = ({ tables }: Database, only?: TableName): string => `
select distinct on (live, p.takes_at, p.name, takes) p.name, i.id is not null as live,
  coalesce(i.takes -> p.name, p.takes)::text as takes,
  exists (select from ${tables.instances} j where j.alive_until > clock_timestamp()
    and coalesce(j.service, p.service) is not distinct from coalesce(p.service, j.service)),
  p.source_schema, p.source_table
from ${tables.pipelines} p
left join ${tables.instances} i on p.name = any(i.pipelines) and i.alive_until > clock_timestamp()
where ${only === undefined ? "true" : `p.source_schema = ${quoteLiteral(only.schema)} and p.source_table = ${quoteLiteral(only.table)}`}
  and (p.first_slot is null or exists (select from ${tables.lanes} l where l.pipeline = p.name))
order by live desc, p.takes_at desc nulls last, p.name, takes`;
