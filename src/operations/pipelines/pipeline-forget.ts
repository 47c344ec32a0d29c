import { isRelayError, RelayError } from "../../core/errors.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import { moveSlots } from "../../postgres/identity.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { statement, transaction } from "../../postgres/transaction.ts";
import { noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import { discardDeadLetters } from "../dead-letters/dead-letter-discard.ts";
import { type OperationTarget, operationReadSettings } from "../events/event-source.ts";
import { slotOf } from "../logs/log-list.ts";
import { dropSlotOf } from "../logs/log-reset.ts";
import { giveUpParked } from "../logs/log-seek.ts";
import { lockFreeLanes } from "./hand-over.ts";
import { readerBacklog } from "./pipeline-backlog.ts";
import type { KnownPipeline } from "./pipelines.ts";

/** What removing a pipeline does. */
export interface ForgetPlan {
  readonly pipeline: string;
  readonly kind: "queue" | "log";
  /** Instances that serve it: it cannot be removed while there are any. */
  readonly servedBy: readonly string[];
  /** Open dead letters: they are discarded, and their copies stay. */
  readonly deadLetters: number;
  /** Failed events that wait for a retry. */
  readonly retrying: number;
  /** Undelivered events of a log; null when they cannot be counted. */
  readonly undelivered: number | null;
  /** The replication slot that is dropped. */
  readonly slot: string | null;
  /** What is lost, in words; empty when nothing is. */
  readonly givenUp: readonly string[];
}

/** Read-only. */
export async function planForget(target: OperationTarget, known: KnownPipeline): Promise<ForgetPlan> {
  const { database } = target;
  const { pipeline } = known;
  const { failedEvents, holds } = database.tables;
  const name = quoteLiteral(pipeline);
  const [row] = await statement(
    database.pool,
    operationReadSettings(database, "reading a pipeline"),
    `select (${servedSql(database, name)}),
       (select count(*) from ${failedEvents} where pipeline = ${name} and resolved_at is null),
       (select count(*) from ${holds} where pipeline = ${name} and state <> 'dead')`,
  );
  const figures = {
    pipeline,
    kind: known.log === null ? ("queue" as const) : ("log" as const),
    servedBy: JSON.parse(row?.[0] ?? "[]") as string[],
    deadLetters: Number(row?.[1]),
    retrying: Number(row?.[2]),
    undelivered: known.log === null ? 0 : await undeliveredOf(target, known),
    slot: known.log === "wal" ? ((await slotOf(database, pipeline))?.name ?? null) : null,
  };
  return { ...figures, givenUp: givenUpBy(figures) };
}

function servedSql({ tables }: Database, name: string): string {
  return `select json_agg(name) from ${tables.instances} where ${name} = any(pipelines) and alive_until > clock_timestamp()`;
}

async function undeliveredOf(target: OperationTarget, known: KnownPipeline): Promise<number | null> {
  // Only its reader sees the content of the write-ahead log.
  if (known.log === "wal") return null;
  try {
    return (await readerBacklog(target, known)).pending;
  } catch (error) {
    if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE") throw error;
    return null;
  }
}

/** Rows of a queue stay unchanged: undelivered ones wait for another relay that reads them. */
function givenUpBy({ deadLetters, kind, retrying, slot, undelivered }: Omit<ForgetPlan, "givenUp">): string[] {
  const when = (holds: boolean, text: string) => (holds ? [text] : []);
  return [
    ...when(deadLetters === 1, "1 dead letter is discarded: it is never sent, its copy stays"),
    ...when(deadLetters > 1, `${deadLetters} dead letters are discarded: they are never sent, their copies stay`),
    ...when(
      kind === "log" && undelivered === null,
      "its undelivered events cannot be counted, and will not be delivered",
    ),
    ...when((undelivered ?? 0) > 0, `${undelivered} undelivered events will not be delivered`),
    ...when(
      kind === "queue" && retrying > 0,
      `${retrying} failed events lose the count of their attempts: their rows wait for the next relay that reads them`,
    ),
    ...when(slot !== null, `the replication slot ${slot} is dropped`),
  ];
}

interface ForgetRequest {
  readonly author: Author;
  /** Also when events are lost. */
  readonly giveUp: boolean;
}

/**
 * Removes a pipeline with its lanes, position and failed events, as if it had never existed. Throws CONFLICT while an
 * instance serves it, or when events would be lost and the request does not allow it.
 */
export async function forgetPipeline(
  target: OperationTarget,
  known: KnownPipeline,
  { author, giveUp }: ForgetRequest,
): Promise<ForgetPlan> {
  const { database } = target;
  const { pipeline } = known;
  const plan = await planForget(target, known);
  requireUnserved(pipeline, plan.servedBy);
  if (plan.givenUp.length > 0 && !giveUp) {
    throw new RelayError(
      "CONFLICT",
      `${pipeline} was not forgotten, because events would be lost: ${plan.givenUp.join("; ")}`,
    );
  }
  const reason = author.reason ?? "its pipeline was forgotten";
  // Batch by batch, since there may be many; rows of a queue are set aside with them.
  if (plan.deadLetters > 0) await discardDeadLetters(target, { choice: { pipeline }, author: { ...author, reason } });
  await transaction(database.pool, writeSettings(database, "forgetting a pipeline"), async (session) => {
    const owned = await lockFreeLanes(session, database, pipeline);
    const [served] = await session.rows(servedSql(database, quoteLiteral(pipeline)));
    requireUnserved(pipeline, owned > 0 ? ["an instance that has just started"] : JSON.parse(served?.[0] ?? "[]"));
    if (plan.slot !== null) await dropSlotOf(database, pipeline);
    await remove(session, database, known, { ...author, reason });
    const { pipeline: _, ...detail } = plan;
    await noteAction(session, database, author, { action: "pipeline-forget", target: pipeline, detail });
  });
  return plan;
}

function requireUnserved(pipeline: string, instances: readonly string[]): void {
  if (instances.length === 0) return;
  const way = "remove it from the settings of the instance first, or stop the instance";
  throw new RelayError("CONFLICT", `${pipeline} is served by ${instances.join(", ")} and cannot be forgotten: ${way}`);
}

async function remove(session: Session, database: Database, known: KnownPipeline, author: Author): Promise<void> {
  const { delivery, pipeline } = known;
  const { lanes, passed, pipelines } = database.tables;
  if (delivery === "exactly-once") await moveSlots(session, database, pipeline);
  await giveUpParked(session, database, pipeline, author);
  await session.rows(`delete from ${passed} where pipeline = $1`, [pipeline]);
  await session.rows(`delete from ${lanes} where pipeline = $1`, [pipeline]);
  // Slots in a destination's ledger are never reused, so the row that owns them stays, without pause and limit: a
  // pipeline that returns starts as a new one.
  await session.rows(
    delivery === "at-least-once"
      ? `delete from ${pipelines} where name = $1`
      : `update ${pipelines} set paused_at = null, paused_by = null, pause_reason = null, lanes_wanted = null,
           limit_per_second = null, limited_by = null, limit_reason = null where name = $1`,
    [pipeline],
  );
}
