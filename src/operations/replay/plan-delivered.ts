import { RelayError } from "../../core/errors.ts";
import type { TypeRule } from "../../ports/queue-store.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { typeCondition } from "../../postgres/type-condition.ts";
import { type EventFilter, holdsText, isId } from "../events/event-filter.ts";
import { listingsOf } from "../events/event-listing.ts";
import { type EventSource, type OperationTarget, operationReadSettings } from "../events/event-source.ts";
import type { KnownPipeline } from "../pipelines/pipelines.ts";
import { type PlanSources, planSources } from "./plan-sources.ts";

/** The delivered events of one pipeline, as a select that fills the plan. */
interface DeliveredSelect {
  readonly pipeline: string;
  readonly source: EventSource;
  readonly condition: string;
}

/** A pipeline, with its rules where it does not read every event. */
interface Deliverer {
  readonly known: KnownPipeline;
  readonly rules: readonly TypeRule[] | null;
}

export async function deliveredSelects(
  target: OperationTarget,
  filter: EventFilter,
  pipeline: string | undefined,
): Promise<readonly DeliveredSelect[]> {
  const { tables } = target.database;
  const sources = await planSources(target);
  const selects: DeliveredSelect[] = [];
  for (const { known, rules } of await deliverers(target, sources, filter.source, pipeline)) {
    const { log, pipeline: name } = known;
    const source = log === null ? sources.waiting(known.source, name) : (sources.log(name)?.events ?? null);
    if (source === null) throw new RelayError("TABLE_MISSING", `${known.source}: ${sources.whyNot(known.source)}`);
    const [listing] = listingsOf(source, tables, { ...filter, state: "delivered" });
    if (listing === undefined) continue;
    const conditions = [...listing.conditions, ...wordConditions(source, filter.word)];
    conditions.push(`not exists (select from ${tables.failedEvents} d where d.pipeline = ${quoteLiteral(known.pipeline)}
      and d.original_event_id = ${source.table.id}::text and (d.resolution = 'discarded' or d.resolved_at is null))`);
    if (rules !== null) conditions.push(typeCondition(source.table, rules, "mine"));
    selects.push({ pipeline: known.pipeline, source, condition: conditions.join("\n  and ") });
  }
  return selects;
}

function wordConditions({ table }: EventSource, word: string | undefined): string[] {
  if (word === undefined) return [];
  const byId = isId(table.idType, word) ? [`${table.id} = ${quoteLiteral(word)}::${table.idType}`] : [];
  const named = [table.key, table.correlationId].map((column) => `${column} = ${quoteLiteral(word)}`);
  return [`(${[...byId, ...named, holdsText(table.key, word)].join(" or ")})`];
}

/** Adds events in the order of writing, source by source. Returns their number. */
export async function findDelivered(
  session: Session,
  { replayItems }: RelayTables,
  plan: string,
  selects: readonly DeliveredSelect[],
  max: number,
): Promise<number> {
  let count = 0;
  for (const { condition, pipeline, source } of selects) {
    const { name, order, table, unmark } = source;
    const was = unmark === null ? `jsonb_build_object('position', ${order}::text)` : "'{}'";
    const [row] = await session.rows(
      `with found as (
         insert into ${replayItems} (plan, seq, pipeline, source, event_id, event_key, event_type, was)
         select $1::uuid, ${count} + row_number() over (order by ${order}, ${table.id}), $2::text, $3::text,
           ${table.id}::text, ${table.key}, ${table.eventType}, ${was}
         from ${table.quotedName} t where ${condition} limit ${max - count} returning 1)
       select count(*) from found`,
      [plan, pipeline, name],
    );
    count += Number(row?.[0]);
  }
  return count;
}

/**
 * The pipelines that delivered the events. A row of a queue went to one destination, and only live relays know which
 * pipeline reads which events: guessing could send an event to a destination where it never belonged.
 */
async function deliverers(
  { database }: OperationTarget,
  { pipelines }: PlanSources,
  source: string | undefined,
  wanted: string | undefined,
): Promise<readonly Deliverer[]> {
  const meant = pipelines.filter(
    (it) => (source === undefined || it.source === source) && (wanted === undefined || it.pipeline === wanted),
  );
  if (meant.length === 0) {
    const names = pipelines.map(({ pipeline }) => pipeline).join(", ") || "none yet";
    throw new RelayError(
      "CONFIG_INVALID",
      `No pipeline reads ${source ?? wanted ?? "this source"}. Pipelines: ${names}`,
    );
  }
  const taken = await livingRules(database);
  return [...Map.groupBy(meant, (it) => it.source).values()].flatMap((ofSource) => {
    const living = ofSource.filter(({ pipeline }) => taken.has(pipeline));
    const chosen = living.length > 0 ? living : ofSource;
    const [first] = chosen;
    if (first?.log === "wal") throw walRefused(first);
    const ruled = chosen.map((known) => ({ known, rules: taken.get(known.pipeline) ?? null }));
    if (chosen.length > 1 && (first?.log !== null || ruled.some(({ rules }) => rules === null)))
      throw ambiguous(chosen);
    return ruled;
  });
}

/** What each pipeline with a live instance reads; null for everything. */
async function livingRules(database: OperationTarget["database"]) {
  const { instances, pipelines } = database.tables;
  const settings = operationReadSettings(database, "reading the rules of the pipelines");
  const rows = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select distinct on (p.name) p.name, (i.takes -> p.name)::text from ${pipelines} p
       join ${instances} i on p.name = any(i.pipelines) and i.alive_until > clock_timestamp()
       order by p.name, i.joined_at desc`,
    ),
  );
  return new Map(rows.map((row) => [row[0] ?? "", JSON.parse(row[1] ?? "null") as readonly TypeRule[] | null]));
}

function walRefused({ pipeline }: KnownPipeline): RelayError {
  return new RelayError(
    "CONFIG_INVALID",
    `${pipeline} reads the write-ahead log, which does not keep delivered events: write the events again in the application`,
  );
}

function ambiguous(pipelines: readonly KnownPipeline[]): RelayError {
  const names = pipelines.map(({ pipeline }) => pipeline).join(", ");
  const what = `Several pipelines read ${pipelines[0]?.source}, so the target of the replay is ambiguous`;
  return new RelayError("CONFIG_INVALID", `${what}: name one of ${names}`);
}
