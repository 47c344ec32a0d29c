import { createHash } from "node:crypto";
import { RelayError } from "../../core/errors.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import { requireSchema } from "../../postgres/migrations/migrate.ts";
import type { Database } from "../../postgres/pool.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import { choiceCondition, type DeadLetterChoice, requireChoice } from "../dead-letters/dead-letter-choice.ts";
import { requireFound, withWholeGroup } from "../dead-letters/letter-group.ts";
import { readPatch } from "../dead-letters/merge-patch.ts";
import type { EventFilter } from "../events/event-filter.ts";
import type { OperationTarget } from "../events/event-source.ts";
import { requireUnredacted } from "../events/redact-shown.ts";
import { bothFilters, filterText, parseDeadLetterChoice, parseEventFilter } from "../filter/filter-language.ts";
import { type FrozenPlan, PLAN_COLUMNS, type PlanAction, type PlanSubject, planOf } from "./frozen-plan.ts";
import { deliveredSelects, findDelivered } from "./plan-delivered.ts";
import { FRESH_STRATUM } from "./plan-strata.ts";
import { planItemsSql, summarize } from "./plan-summary.ts";

interface PlanRequest {
  readonly action: PlanAction;
  readonly subject: PlanSubject;
  /** In the filter language. */
  readonly q?: string | undefined;
  readonly ids?: readonly string[] | undefined;
  /** Every open dead letter; must be set explicitly. */
  readonly all?: boolean | undefined;
  /** For delivered events where several pipelines read their source. */
  readonly pipeline?: string | undefined;
  readonly ratePerSecond?: number | undefined;
  /** For dead letters: a JSON merge patch for each payload. */
  readonly patch?: string | undefined;
  readonly author: Author;
}

/** More than anyone replays on purpose. */
const PLAN_ITEMS_MAX = 500_000;
const PLAN_MS = 60_000;
const FILTER_SHOWN_MAX = 2_000;
const RATE_MAX = 1_000_000;

/**
 * Freezes the list of matching events, each as it is now, with warnings for the decision. Everything in one
 * transaction; changes only the plan.
 */
export async function makePlan(target: OperationTarget, request: PlanRequest): Promise<FrozenPlan> {
  const { database } = target;
  const { tables } = database;
  requirePossible(request);
  requirePatch(target, request);
  await requireSchema(database);
  const chosen = await chosenBy(database, request);
  const selects = chosen.subject === "dead" ? null : await deliveredSelects(target, chosen.filter, request.pipeline);
  const settings = {
    ...writeSettings(database, "making a plan"),
    statementTimeoutMs: PLAN_MS,
    settings: PLAN_SETTINGS,
  };
  const plan = await transaction(database.pool, settings, async (session) => {
    const [made] = await session.rows(
      `insert into ${tables.replayPlans} (action, subject, filter, state, rate_per_second, created_by, reason, patch)
       values ($1, $2, $3, 'planned', $4, $5, $6, to_jsonb($7::text)) returning id`,
      [
        request.action,
        request.subject,
        shownFilter(chosen.filter),
        request.ratePerSecond ?? null,
        request.author.by,
        request.author.reason ?? null,
        request.patch ?? null,
      ],
    );
    const id = made?.[0] ?? "";
    const count =
      selects === null
        ? await findDeadLetters(session, tables, id, chosen.filter, PLAN_ITEMS_MAX + 1)
        : await findDelivered(session, tables, id, selects, PLAN_ITEMS_MAX + 1);
    if (count === 0) {
      await session.rows(`delete from ${tables.replayPlans} where id = $1`, [id]);
      return null;
    }
    requireBounded(count);
    await requireClear(session, target, id, chosen.filter.ids ?? []);
    const summary = await summarize((text) => session.rows(text), tables, planItemsSql(tables, id), request);
    const { breakdown, warnings } = summary;
    const strata = summary.strata.map((stratum) => ({ ...stratum, ...FRESH_STRATUM }));
    const progress = { waiting: count, sent: 0, done: 0, failed: 0, left: 0 };
    const [row] = await session.rows(
      `update ${tables.replayPlans} p set items = $2, breakdown = $3::jsonb, warnings = $4::jsonb where id = $1
       returning ${PLAN_COLUMNS}`,
      [id, count, JSON.stringify({ ...breakdown, progress, strata }), JSON.stringify(warnings)],
    );
    const patch = request.patch === undefined ? {} : { patch: digestOf(request.patch) };
    const detail = { action: request.action, subject: request.subject, count, ...patch };
    await noteAction(session, database, request.author, { action: "plan", target: id, detail });
    return planOf(row ?? []);
  });
  return plan ?? (await refuseEmpty(database, chosen));
}

const PLAN_SETTINGS = { jit: "off", work_mem: "64MB" };

type Chosen =
  | { readonly subject: "dead"; readonly filter: DeadLetterChoice }
  | { readonly subject: "delivered"; readonly filter: EventFilter };

async function chosenBy(database: Database, { all = false, ids, q = "", subject }: PlanRequest): Promise<Chosen> {
  const byItself = ids === undefined ? {} : { ids };
  if (subject === "dead") {
    const filter = bothFilters(parseDeadLetterChoice(q, new Date()), byItself);
    requireChoice(filter, all);
    return { subject, filter: await withWholeGroup(database, filter) };
  }
  const { state, ...rest } = bothFilters(parseEventFilter(q, new Date()), byItself);
  if (state !== undefined && state !== "delivered") {
    throw new RelayError("CONFIG_INVALID", `Delivered events are never ${state}: remove the state from the filter`);
  }
  requireOfDelivered(rest);
  if (Object.keys(rest).length === 0) {
    throw new RelayError(
      "CONFIG_INVALID",
      "No delivered events are selected: give ids, or a filter such as `type:order.* since:2026-01-31`",
    );
  }
  return { subject, filter: rest };
}

/** Refuses conditions that do not apply to delivered events, or are too expensive for all of them. */
function requireOfDelivered({ error, group, payload }: EventFilter): void {
  if (group !== undefined || error !== undefined) {
    const what = group === undefined ? "An error" : "A group";
    throw new RelayError("CONFIG_INVALID", `${what} selects dead letters: remove it to replay delivered events`);
  }
  if (payload === undefined) return;
  throw new RelayError(
    "CONFIG_INVALID",
    "A plan cannot filter by payload fields: find and select the events in a list, or use text:",
  );
}

function requirePossible({ action, author, ratePerSecond, subject }: PlanRequest): void {
  if (action === "discard" && subject === "delivered") {
    throw new RelayError("CONFIG_INVALID", "Delivered events cannot be discarded");
  }
  if (action === "discard" && !author.reason) {
    throw new RelayError("CONFIG_INVALID", "To discard events needs a reason, for the audit");
  }
  if (ratePerSecond === undefined || (ratePerSecond > 0 && ratePerSecond <= RATE_MAX)) return;
  throw new RelayError("CONFIG_INVALID", `Invalid rate of ${ratePerSecond} events per second: use at most ${RATE_MAX}`);
}

/** A plan without events is always a mistake in the filter. */
async function refuseEmpty(database: Database, { filter, subject }: Chosen): Promise<never> {
  if (subject === "dead") await requireFound(database, 0, filter);
  throw new RelayError("NOTHING_MATCHES", `No delivered events match ${shownFilter(filter)}`);
}

function requirePatch({ shown }: OperationTarget, { action, author, patch, subject }: PlanRequest): void {
  if (patch === undefined) return;
  if (action !== "replay" || subject !== "dead") {
    throw new RelayError(
      "CONFIG_INVALID",
      "A patch needs a replay of dead letters: delivered events cannot be changed",
    );
  }
  if (!author.reason) throw new RelayError("CONFIG_INVALID", "To patch events needs a reason, for the audit");
  readPatch(patch);
  requireUnredacted(shown, Buffer.from(patch));
}

/** Everyone can read the audit, and a patch may contain the same data as a payload. */
function digestOf(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

function requireBounded(count: number): void {
  if (count <= PLAN_ITEMS_MAX) return;
  throw new RelayError(
    "CONFIG_INVALID",
    `More than ${PLAN_ITEMS_MAX} events match, the maximum of a plan: narrow the filter, for example by since: and until:`,
  );
}

/** Numeric ids often exist in several tables: the source must be named, so that no event is replayed by mistake. */
async function requireClear(
  session: Session,
  { database }: OperationTarget,
  plan: string,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  const [row] = await session.rows(
    `select event_id, string_agg(distinct source, ' and in ') from ${database.tables.replayItems}
     where plan = $1 group by event_id having count(distinct source) > 1 limit 1`,
    [plan],
  );
  if (row === undefined) return;
  throw new RelayError("CONFIG_INVALID", `${row[0]} is in ${row[1]}: add source: to select one`);
}

function shownFilter(filter: DeadLetterChoice & EventFilter): string {
  const text = filterText(filter);
  return text.length <= FILTER_SHOWN_MAX ? text : `${text.slice(0, FILTER_SHOWN_MAX - 1)}…`;
}

/**
 * Adds the current dead letters to a plan. Events of one key die in the order of writing, since later ones wait while
 * an earlier one is retried. Returns their number.
 */
async function findDeadLetters(
  session: Session,
  { failedEvents, replayItems }: RelayTables,
  plan: string,
  choice: DeadLetterChoice,
  max: number,
): Promise<number> {
  const [row] = await session.rows(
    `with found as (
       insert into ${replayItems} (plan, seq, pipeline, source, event_id, event_key, event_type, fingerprint, was)
       select $1::uuid, row_number() over (order by d.first_failed_at, d.event_created_at, d.id), d.pipeline,
         d.source_schema || '.' || d.source_table, d.original_event_id, d.event_key, d.event_type, d.fingerprint,
         jsonb_build_object('letter', d.id, 'lastFailedAt', d.last_failed_at)
       from ${failedEvents} d where ${choiceCondition({ ...choice, resolved: false })} limit ${max}
       returning 1)
     select count(*) from found`,
    [plan],
  );
  return Number(row?.[0]);
}
