import type { Database } from "../../postgres/pool.ts";
import { glance, statement } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../events/event-source.ts";
import { isoSql } from "../events/event-time.ts";

/** What all instances together have done, from the lanes. */
export interface DeliveredFigures {
  /** Events delivered in total, by pipeline. */
  readonly totals: ReadonlyMap<string, bigint>;
  /** By pipeline. */
  readonly paused: ReadonlyMap<string, PauseFigures>;
  readonly instances: readonly LivingInstance[];
}

interface PauseFigures {
  readonly at: string;
  readonly by: string | null;
}

/** A live instance. */
export interface LivingInstance {
  readonly id: string;
  readonly name: string;
  readonly joinedAt: string;
  readonly lanes: number;
}

/** Numbers from the holds of a pipeline. */
export interface HoldFigures {
  readonly retrying: number;
  readonly parkedKeys: number;
  /** Keys that a dead event parks: the others continue on their own. */
  readonly deadKeys: number;
  readonly dead: number;
  /** When the oldest current dead letter died; null without any. */
  readonly deadSince: string | null;
  /** First failure of the oldest dead event that parks a key; null without any. */
  readonly parkedSince: string | null;
}

/** An operator's action that explains a change in a chart. */
export interface NotedAction {
  readonly at: string;
  readonly action: string;
  readonly target: string | null;
  readonly actor: string;
}

/** The queries of the overview. */
export interface RelayQuestions {
  delivered(): Promise<DeliveredFigures>;
  /** By pipeline. */
  holds(): Promise<ReadonlyMap<string, HoldFigures>>;
  /** Actions of the last hour, newest first. */
  actions(): Promise<readonly NotedAction[]>;
}

const GLANCE_MS = 3_000;
const ACTIONS_MAX = 100;
const ACTIONS = [
  "pause",
  "resume",
  "limit",
  "lanes",
  "plan-run",
  "plan-pause",
  "plan-cancel",
  "plan-stopped",
  "plan-done",
];

/** The queries against the relay's schema. */
export function relayQuestions(database: Database): RelayQuestions {
  return {
    delivered: () => deliveredFigures(database),
    holds: () => holdFigures(database),
    actions: () => notedActions(database),
  };
}

/** A single cheap statement, because it runs often: a few rows per pipeline, by their keys. */
export async function deliveredFigures(database: Database): Promise<DeliveredFigures> {
  const { instances, lanes, pipelines } = database.tables;
  const [row] = await glance(
    database.pool,
    database.errorContext("summing up what was delivered"),
    GLANCE_MS,
    `select (select coalesce(json_object_agg(s.pipeline, s.total::text), '{}') from
         (select pipeline, sum(published_total) as total from ${lanes} group by pipeline) s)::text,
       (select coalesce(json_object_agg(name, json_build_object('at', ${isoSql("paused_at")}, 'by', paused_by)), '{}')
         from ${pipelines} where paused_at is not null)::text,
       (select coalesce(json_agg(json_build_object('id', i.id, 'name', i.name,
           'joinedAt', ${isoSql("i.joined_at")},
           'lanes', (select count(*) from ${lanes} l where l.owner = i.id)) order by i.joined_at, i.id), '[]')
         from ${instances} i where i.alive_until > clock_timestamp())::text`,
  );
  const totals = Object.entries(JSON.parse(row?.[0] ?? "{}") as Record<string, string>);
  return {
    totals: new Map(totals.map(([pipeline, total]) => [pipeline, BigInt(total)])),
    paused: new Map(Object.entries(JSON.parse(row?.[1] ?? "{}") as Record<string, PauseFigures>)),
    instances: JSON.parse(row?.[2] ?? "[]") as LivingInstance[],
  };
}

/** Numbers from the holds, by pipeline. */
export async function holdFigures(database: Database): Promise<ReadonlyMap<string, HoldFigures>> {
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "counting holds"),
    `select pipeline, count(*) filter (where state <> 'dead'),
       count(distinct event_key) filter (where parks and event_key is not null), count(*) filter (where state = 'dead'),
       count(distinct event_key) filter (where parks and event_key is not null and state = 'dead'),
       ${isoSql("min(last_failed_at) filter (where state = 'dead')")},
       ${isoSql("min(first_failed_at) filter (where parks and event_key is not null and state = 'dead')")}
     from ${database.tables.holds} group by pipeline`,
  );
  return new Map(
    rows.map((row) => {
      const [retrying = 0, parkedKeys = 0, dead = 0, deadKeys = 0] = row.slice(1, 5).map(Number);
      const since = { deadSince: row[5] ?? null, parkedSince: row[6] ?? null };
      return [row[0] ?? "", { retrying, parkedKeys, deadKeys, dead, ...since }];
    }),
  );
}

async function notedActions(database: Database): Promise<readonly NotedAction[]> {
  const actions = ACTIONS.map((action) => `'${action}'`).join(", ");
  // Reads by the primary key and a bounded number of rows: an hour of a busy audit may be long.
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "reading the audit"),
    `select ${isoSql("at")}, action, target, actor from
       (select * from ${database.tables.audit} order by id desc limit 2000) a
     where action in (${actions}) and not detail ? 'destination' and at > clock_timestamp() - interval '1 hour' order by id desc limit ${ACTIONS_MAX}`,
  );
  return rows.map((row) => ({ at: row[0] ?? "", action: row[1] ?? "", target: row[2] ?? null, actor: row[3] ?? "" }));
}
