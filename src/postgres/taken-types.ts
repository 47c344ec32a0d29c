import type { TypeRule } from "../ports/queue-store.ts";
import { displayTable, quoteLiteral, type TableName } from "./identifiers.ts";
import type { Database } from "./pool.ts";
import { glance } from "./transaction.ts";

/** The type filters of the living instances for one table of events. */
interface TakenTypes {
  /** Null when one of them reads everything, or does not report its filter. */
  readonly rules: readonly (readonly TypeRule[])[] | null;
  /**
   * The pipeline that reports unrouted events, so that they are reported once: the first whose lane 0 has an owner;
   * null without one.
   */
  readonly reporter: string | null;
  /** Living instances that read the table. */
  readonly instances: number;
}

/** Reads the filters, to find events that match none of them. */
export async function takenTypes(database: Database, table: TableName): Promise<TakenTypes> {
  const context = database.errorContext("reading the type filters", displayTable(table));
  const rows = await glance(database.pool, context, database.timeouts.statementMs, takenTypesSql(database, table));
  const texts = new Set(rows.map((row) => row[1]));
  const knowsAll = ![...texts].some((text) => text == null || text === TAKES_EVERYTHING);
  return {
    rules: knowsAll ? [...texts].map((text) => JSON.parse(text ?? "[]") as readonly TypeRule[]) : null,
    reporter: rows.find((row) => row[2] === "t")?.[0] ?? null,
    instances: new Set(rows.map((row) => row[3])).size,
  };
}

/** A filter that excludes nothing is null. */
const TAKES_EVERYTHING = "null";

const takenTypesSql = ({ tables }: Database, { schema, table }: TableName): string => `
select p.name, i.takes -> p.name, l.owner is not null, i.id
from ${tables.pipelines} p
join ${tables.instances} i on p.name = any(i.pipelines) and i.alive_until > clock_timestamp()
left join ${tables.lanes} l on l.pipeline = p.name and l.lane = 0 and l.owner = i.id
where p.source_schema = ${quoteLiteral(schema)} and p.source_table = ${quoteLiteral(table)}
order by p.name collate "C"`;
