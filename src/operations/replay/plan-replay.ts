import { RelayError } from "../../core/errors.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import { requireSchema } from "../../postgres/migrations/migrate.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { noteAction } from "../audit.ts";
import type { Author } from "../author.ts";
import { type DeadLetterChoice, requireChoice } from "../dead-letter-choice.ts";
import type { EventFilter } from "../event-filter.ts";
import type { OperationTarget } from "../event-source.ts";
import { bothFilters, filterText, parseDeadLetterChoice, parseEventFilter } from "../filter-language.ts";
import { type FrozenPlan, PLAN_COLUMNS, type PlanAction, type PlanSubject, planOf } from "./frozen-plan.ts";
import { findDeadLetters } from "./plan-dead.ts";
import { deliveredSelects, findDelivered } from "./plan-delivered.ts";
import { summarize } from "./plan-summary.ts";

interface PlanRequest {
  readonly action: PlanAction;
  readonly subject: PlanSubject;
  /** In the filter language. */
  readonly q?: string | undefined;
  readonly ids?: readonly string[] | undefined;
  /** Every dead letter: must be said. */
  readonly all?: boolean | undefined;
  /** Of delivered events, where several pipelines read their source. */
  readonly pipeline?: string | undefined;
  readonly ratePerSecond?: number | undefined;
  readonly author: Author;
}

/** More than anybody replays on purpose. */
const PLAN_ITEMS_MAX = 500_000;
const PLAN_MS = 60_000;
const FILTER_SHOWN_MAX = 2_000;
const RATE_MAX = 1_000_000;

/**
 * Writes down which events are meant, each as it is now, and what is to be known before anything is done with them. All
 * in one transaction; nothing is changed but the plan.
 */
export async function makePlan(target: OperationTarget, request: PlanRequest): Promise<FrozenPlan> {
  const { database } = target;
  const { tables } = database;
  requirePossible(request);
  await requireSchema(database);
  const chosen = chosenBy(request);
  const selects = chosen.subject === "dead" ? null : await deliveredSelects(target, chosen.filter, request.pipeline);
  const settings = {
    ...writeSettings(database, "making a plan"),
    statementTimeoutMs: PLAN_MS,
    settings: PLAN_SETTINGS,
  };
  return await transaction(database.pool, settings, async (session) => {
    const [made] = await session.rows(
      `insert into ${tables.replayPlans} (action, subject, filter, state, rate_per_second, created_by, reason)
       values ($1, $2, $3, 'planned', $4, $5, $6) returning id`,
      [
        request.action,
        request.subject,
        shownFilter(chosen.filter),
        request.ratePerSecond ?? null,
        request.author.by,
        request.author.reason ?? null,
      ],
    );
    const id = made?.[0] ?? "";
    const count =
      selects === null
        ? await findDeadLetters(session, tables, id, chosen.filter, PLAN_ITEMS_MAX + 1)
        : await findDelivered(session, tables, id, selects, PLAN_ITEMS_MAX + 1);
    requireBounded(count);
    await requireClear(session, target, id, chosen.filter.ids ?? []);
    const { breakdown, warnings } = await summarize(session, tables, { id, ...request });
    const progress = { waiting: count, sent: 0, done: 0, failed: 0, left: 0 };
    const [row] = await session.rows(
      `update ${tables.replayPlans} p set items = $2, breakdown = $3::jsonb, warnings = $4::jsonb where id = $1
       returning ${PLAN_COLUMNS}`,
      [id, count, JSON.stringify({ ...breakdown, progress }), JSON.stringify(warnings)],
    );
    const detail = { action: request.action, subject: request.subject, count };
    await noteAction(session, database, request.author, { action: "plan", target: id, detail });
    return planOf(row ?? []);
  });
}

const PLAN_SETTINGS = { jit: "off", work_mem: "64MB" };

type Chosen =
  | { readonly subject: "dead"; readonly filter: DeadLetterChoice }
  | { readonly subject: "delivered"; readonly filter: EventFilter };

function chosenBy({ all = false, ids, q = "", subject }: PlanRequest): Chosen {
  const byItself = ids === undefined ? {} : { ids };
  if (subject === "dead") {
    const filter = bothFilters(parseDeadLetterChoice(q, new Date()), byItself);
    requireChoice(filter, all);
    return { subject, filter };
  }
  const { state, ...rest } = bothFilters(parseEventFilter(q, new Date()), byItself);
  if (state !== undefined && state !== "delivered") {
    throw new RelayError("CONFIG_INVALID", `Delivered events are not ${state}: leave the state out of the filter`);
  }
  if (rest.group !== undefined) {
    throw new RelayError("CONFIG_INVALID", "A group is one of dead letters: leave it out to replay delivered events");
  }
  if (Object.keys(rest).length === 0) {
    throw new RelayError(
      "CONFIG_INVALID",
      "Nothing says which delivered events are meant: name ids, or a filter such as `type:order.* since:2026-01-31`",
    );
  }
  return { subject, filter: rest };
}

function requirePossible({ action, author, ratePerSecond, subject }: PlanRequest): void {
  if (action === "discard" && subject === "delivered") {
    throw new RelayError("CONFIG_INVALID", "What is delivered cannot be discarded: it is out");
  }
  if (action === "discard" && !author.reason) {
    throw new RelayError("CONFIG_INVALID", "To discard events needs a reason, for those who look for them later");
  }
  if (ratePerSecond === undefined || (ratePerSecond > 0 && ratePerSecond <= RATE_MAX)) return;
  throw new RelayError("CONFIG_INVALID", `${ratePerSecond} events a second is no rate: write one up to ${RATE_MAX}`);
}

function requireBounded(count: number): void {
  if (count <= PLAN_ITEMS_MAX) return;
  throw new RelayError(
    "CONFIG_INVALID",
    `More than ${PLAN_ITEMS_MAX} events are meant, and a plan has no more: narrow the filter, for instance by since: and until:`,
  );
}

/** Ids that are numbers are soon given out in two tables: nobody's event is touched by mistake. */
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
  throw new RelayError("CONFIG_INVALID", `${row[0]} is in ${row[1]}: add source: to say which one is meant`);
}

function shownFilter(filter: DeadLetterChoice & EventFilter): string {
  const text = filterText(filter);
  return text.length <= FILTER_SHOWN_MAX ? text : `${text.slice(0, FILTER_SHOWN_MAX - 1)}…`;
}
