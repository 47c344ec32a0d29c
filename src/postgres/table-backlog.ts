import { BACKLOG_EXACT_MAX, type Backlog, type SourceBacklog } from "../ports/queue-store.ts";
import type { ErrorContext } from "./errors.ts";
import type { EventTable } from "./event-table.ts";
import { quoteLiteral } from "./identifiers.ts";
import type { Database } from "./pool.ts";
import type { RelayTables } from "./relay-tables.ts";
import type { Row } from "./session.ts";
import type { TableTakers } from "./table-takers.ts";
import { statement } from "./transaction.ts";
import { type Taker, takerSql } from "./type-condition.ts";

/** Pending rows of a table, as one index returns them in order. */
interface WaitingRows {
  readonly where: string;
  /** Columns of the index, to read from either end; empty where any rows will do. */
  readonly order: readonly string[];
}

/** How to count the pending rows of a table. */
export interface CountedTable {
  readonly table: EventTable;
  /** No row is in two of them. */
  readonly waiting: readonly WaitingRows[];
  /** When a row's event was due, as timestamptz. */
  readonly dueAt: string;
  /** True where the row of a dead letter is itself marked as dead, so that it is not among the pending ones. */
  readonly marksDead: boolean;
  /** Dead letters by pipeline: a select of names and counts, for the pipelines of this list. */
  readonly dead: (pipelines: string) => string;
}

/** A count for people and alerts: it must not slow the delivery down. */
const BACKLOG_MS = 2_000;

/**
 * Counts the pending rows of a table by the pipelines that read them, in one pass for all pipelines. At its limit it
 * also samples the newest rows, and estimates the rest from both ends.
 */
export async function tableBacklog(
  database: Database,
  context: ErrorContext,
  counted: CountedTable,
  { retired, takers, unknown }: TableTakers,
): Promise<SourceBacklog> {
  const read = (text: string) => statement(database.pool, { ...SETTINGS, context }, text);
  const first = partsOf(await read(sampleSql(counted, database.tables, takers, "first")));
  const isWhole = counted.waiting.every((_, part) => rowsIn(first, part) <= BACKLOG_EXACT_MAX);
  const figures = isWhole ? first : await estimated(counted, database.tables, takers, first, read);
  const pipelines = [...new Set([...takers.map(({ pipeline }) => pipeline), ...retired])];
  const dead = pipelines.length === 0 ? [] : await read(counted.dead(pipelines.map(quoteLiteral).join(", ")));
  const deadOf = new Map(dead.map((row) => [row[0], Number(row[1])]));
  const of = (places: readonly number[], state: State) => summed(figures, places, state);
  const backlogs = pipelines.map((pipeline): [string, Backlog] => {
    const places = takers.flatMap((taker, at) => (taker.pipeline === pipeline ? [at + 1] : []));
    const { count: pending, oldestAgeMs } = of(places, "pending");
    const behindDead = of(places, "behind").count;
    return [pipeline, { pending, isEstimate: !isWhole, oldestAgeMs, behindDead, dead: deadOf.get(pipeline) ?? 0 }];
  });
  const { count: events, oldestAgeMs } = of([0], "pending");
  // Before any pipeline has registered, it is unknown what they read.
  const unrouted = unknown.length > 0 || pipelines.length === 0 ? null : { events, isEstimate: !isWhole, oldestAgeMs };
  return { pipelines: new Map(backlogs), unrouted };
}

const SETTINGS = {
  statementTimeoutMs: BACKLOG_MS,
  lockTimeoutMs: BACKLOG_MS,
  readOnly: true,
  settings: { jit: "off", work_mem: "64MB" },
};

type State = "pending" | "behind" | "dead";

/** Rows of one part that belong to one pipeline and have one state. */
interface Figure {
  readonly part: number;
  /** Its number in the list of takers, from 1; 0: none. */
  readonly taker: number;
  readonly state: State;
  readonly count: number;
  readonly oldestAgeMs: number | null;
}

const partsOf = (rows: readonly Row[]): readonly Figure[] =>
  rows.map((row) => ({
    part: Number(row[0]),
    taker: Number(row[1]),
    state: row[2] as State,
    count: Number(row[3]),
    // A clock that stepped back, or an event that is not due yet, must not produce a negative age.
    oldestAgeMs: row[4] == null ? null : Math.max(0, Number(row[4])),
  }));

function rowsIn(figures: readonly Figure[], part: number): number {
  return figures.filter((figure) => figure.part === part).reduce((sum, { count }) => sum + count, 0);
}

function summed(figures: readonly Figure[], places: readonly number[], state: State) {
  const meant = figures.filter((figure) => places.includes(figure.taker) && figure.state === state);
  const ages = meant.flatMap(({ oldestAgeMs }) => oldestAgeMs ?? []);
  return {
    count: meant.reduce((sum, { count }) => sum + count, 0),
    oldestAgeMs: ages.length === 0 ? null : Math.max(...ages),
  };
}

/**
 * Counts rows from one end of each part, one more than the limit. An event that is a dead letter of its pipeline is
 * dead; an event whose key is parked by a dead letter waits behind it.
 */
export function sampleSql(
  { dueAt, marksDead, table, waiting }: CountedTable,
  tables: RelayTables,
  takers: readonly Taker[],
  end: "first" | "last",
): string {
  const direction = end === "first" ? "" : " desc";
  const parts = waiting.map(({ order, where }, part) => {
    const by = order.map((column) => `${column}${direction}`).join(", ");
    return `(select ${part} as outbox_relay_part, t.* from ${table.quotedName} t where ${where}
    ${by === "" ? "" : `order by ${by}`} limit ${BACKLOG_EXACT_MAX + 1})`;
  });
  const names = takers.map(({ pipeline }, at) => `(${at + 1}, ${quoteLiteral(pipeline)})`);
  // No join: a hashed subplan costs the same for one dead letter as for thousands.
  const held = (column: string, more: string) =>
    `select p.taker, h.${column} from (values ${names.length === 0 ? "(0, '')" : names.join(", ")}) p (taker, name)
    join ${tables.holds} h on h.pipeline = p.name and h.state = 'dead'${more}`;
  const isDead = marksDead ? "false" : `(w.taker, w.id) in (${held("event_id", "")})`;
  return `select w.part, w.taker, case when w.taker = 0 then 'pending'
    when ${isDead} then 'dead'
    when w.key is not null and (w.taker, w.key) in (${held("event_key", " and h.parks and h.event_key is not null")}) then 'behind'
    else 'pending' end as state, count(*), extract(epoch from clock_timestamp() - min(w.due_at)) * 1000
from (select t.outbox_relay_part as part, ${takerSql(table, takers)} as taker, ${table.id}::text collate "C" as id,
    ${table.key} collate "C" as key, ${dueAt} as due_at from (${parts.join("\n  union all ")}) t offset 0) w
group by 1, 2, 3`;
}

type Read = (text: string) => Promise<readonly Row[]>;

/** Uses the counts of both ends, and assumes for the rest the same shares as in both ends together. */
async function estimated(
  counted: CountedTable,
  tables: RelayTables,
  takers: readonly Taker[],
  first: readonly Figure[],
  read: Read,
): Promise<readonly Figure[]> {
  const last = partsOf(await read(sampleSql(counted, tables, takers, "last")));
  const figures: Figure[] = [];
  for (const [part, { where }] of counted.waiting.entries()) {
    const ofPart = (some: readonly Figure[]) => some.filter((figure) => figure.part === part);
    if (rowsIn(first, part) <= BACKLOG_EXACT_MAX) figures.push(...ofPart(first));
    else {
      const [plan] = await read(`explain (format json) select from ${counted.table.quotedName} t where ${where}`);
      figures.push(...shares(ofPart(first), ofPart(last), planRows(plan)));
    }
  }
  return figures;
}

/** Extrapolates the counts of both ends to `planned` rows. */
export function shares(first: readonly Figure[], last: readonly Figure[], planned: number): readonly Figure[] {
  const sum = (some: readonly Figure[]) => some.reduce((total, { count }) => total + count, 0);
  // Dead letters are counted separately, so those at one end say nothing about the rest.
  const waits = ({ state }: Figure) => state !== "dead";
  const [firstRows, lastRows] = [sum(first.filter(waits)), sum(last.filter(waits))];
  const restRows = Math.max(0, planned - sum(first));
  const alike = Map.groupBy([...first, ...last].filter(waits), ({ state, taker }) => `${taker} ${state}`);
  return [...alike.values()].map((both) => {
    const [atFirst, atLast] = [
      sum(both.filter((it) => first.includes(it))),
      sum(both.filter((it) => last.includes(it))),
    ];
    const share = (atFirst + atLast) / (firstRows + lastRows);
    const ages = both.flatMap(({ oldestAgeMs }) => oldestAgeMs ?? []);
    return {
      ...both[0]!,
      count: Math.max(atFirst, atLast, Math.round(atFirst + share * restRows)),
      oldestAgeMs: ages.length === 0 ? null : Math.max(...ages),
    };
  });
}

/** The planner's estimate, which costs nothing. */
function planRows(plan: Row | undefined): number {
  const [explained] = JSON.parse(plan?.[0] ?? "[]") as [{ readonly Plan?: { readonly "Plan Rows"?: number } }?];
  return explained?.Plan?.["Plan Rows"] ?? 0;
}
