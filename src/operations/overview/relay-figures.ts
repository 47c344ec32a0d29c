import type { Database } from "../../postgres/pool.ts";
import { glance, statement } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../event-source.ts";
import { isoSql } from "../event-time.ts";

/** What all instances together have done, as the lanes know it. */
export interface DeliveredFigures {
  /** Events delivered since ever, by pipeline. */
  readonly totals: ReadonlyMap<string, bigint>;
  readonly paused: ReadonlySet<string>;
  readonly instances: readonly LivingInstance[];
}

export interface LivingInstance {
  readonly id: string;
  readonly name: string;
  readonly joinedAt: string;
  readonly lanes: number;
}

export interface HoldFigures {
  readonly retrying: number;
  readonly parkedKeys: number;
  readonly dead: number;
}

/** What a person did that explains a chart. */
export interface NotedAction {
  readonly at: string;
  readonly action: string;
  readonly target: string | null;
  readonly actor: string;
}

/** What an overview asks of the relay's schema. */
export interface RelayQuestions {
  delivered(): Promise<DeliveredFigures>;
  /** By pipeline. */
  holds(): Promise<ReadonlyMap<string, HoldFigures>>;
  /** Of the last hour, the last ones first. */
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

export function relayQuestions(database: Database): RelayQuestions {
  return {
    delivered: () => deliveredFigures(database),
    holds: () => holdFigures(database),
    actions: () => notedActions(database),
  };
}

/** One statement by itself, since it is sent again and again: a few rows per pipeline, by their keys. */
export async function deliveredFigures(database: Database): Promise<DeliveredFigures> {
  const { instances, lanes, pipelines } = database.tables;
  const [row] = await glance(
    database.pool,
    database.errorContext("summing up what was delivered"),
    GLANCE_MS,
    `select (select coalesce(json_object_agg(s.pipeline, s.total::text), '{}') from
         (select pipeline, sum(published_total) as total from ${lanes} group by pipeline) s)::text,
       (select coalesce(json_agg(name), '[]') from ${pipelines} where paused_at is not null)::text,
       (select coalesce(json_agg(json_build_object('id', i.id, 'name', i.name,
           'joinedAt', ${isoSql("i.joined_at")},
           'lanes', (select count(*) from ${lanes} l where l.owner = i.id)) order by i.joined_at, i.id), '[]')
         from ${instances} i where i.alive_until > clock_timestamp())::text`,
  );
  const totals = Object.entries(JSON.parse(row?.[0] ?? "{}") as Record<string, string>);
  return {
    totals: new Map(totals.map(([pipeline, total]) => [pipeline, BigInt(total)])),
    paused: new Set(JSON.parse(row?.[1] ?? "[]") as string[]),
    instances: JSON.parse(row?.[2] ?? "[]") as LivingInstance[],
  };
}

async function holdFigures(database: Database): Promise<ReadonlyMap<string, HoldFigures>> {
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "counting holds"),
    `select pipeline, count(*) filter (where state <> 'dead'),
       count(distinct event_key) filter (where parks and event_key is not null), count(*) filter (where state = 'dead')
     from ${database.tables.holds} group by pipeline`,
  );
  return new Map(
    rows.map((row) => {
      const [retrying = 0, parkedKeys = 0, dead = 0] = row.slice(1).map(Number);
      return [row[0] ?? "", { retrying, parkedKeys, dead }];
    }),
  );
}

async function notedActions(database: Database): Promise<readonly NotedAction[]> {
  const actions = ACTIONS.map((action) => `'${action}'`).join(", ");
  // By the primary key, and not far: an hour of a busy audit may be long.
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "reading the audit"),
    `select ${isoSql("at")}, action, target, actor from
       (select * from ${database.tables.audit} order by id desc limit 2000) a
     where action in (${actions}) and at > clock_timestamp() - interval '1 hour' order by id desc limit ${ACTIONS_MAX}`,
  );
  return rows.map((row) => ({ at: row[0] ?? "", action: row[1] ?? "", target: row[2] ?? null, actor: row[3] ?? "" }));
}
