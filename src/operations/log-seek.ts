import { RelayError } from "../core/errors.ts";
import { writeSettings } from "../postgres/lanes.ts";
import type { Database } from "../postgres/pool.ts";
import type { Session } from "../postgres/session.ts";
import { transaction } from "../postgres/transaction.ts";
import { presentWalPlace } from "../sources/postgres/wal/present-place.ts";
import type { Author } from "./author.ts";
import type { OperationTarget } from "./event-source.ts";
import { type HandOverOptions, lockFreeLanes, onceHandedOver } from "./hand-over.ts";
import { noteLogChange } from "./log-audit.ts";
import { parkedCounts } from "./log-list.ts";
import { type SeekTarget, tailPlace } from "./log-place.ts";
import type { KnownPipeline } from "./pipelines.ts";

export interface SeekPlan {
  readonly pipeline: string;
  /** The place that every lane gets. */
  readonly position: Readonly<Record<string, unknown>>;
  /** Events that it has before it now, and would have; null where nobody can count them. Capped at 10,001. */
  readonly lagNow: number | null;
  readonly lagThen: number | null;
  /** Delivered events that would be sent again, and undelivered ones that would be left out. */
  readonly again: number | null;
  readonly skipped: number | null;
  readonly parked: number;
}

interface SeekRequest extends HandOverOptions {
  readonly to: SeekTarget;
  /** Also gives up what waits beside the log. */
  readonly dropParked: boolean;
  readonly author: Author;
}

/** What a seek would do. Reads only. */
export async function planSeek(target: OperationTarget, known: KnownPipeline, to: SeekTarget): Promise<SeekPlan> {
  const parked = (await parkedCounts(target.database)).get(known.pipeline) ?? 0;
  const { pipeline } = known;
  if (requireLog(known) === "wal") {
    const position = await walPosition(target.database, pipeline, to);
    const unknown = { lagNow: null, lagThen: null, again: null, skipped: null };
    return { pipeline, position: JSON.parse(position) as SeekPlan["position"], ...unknown, parked };
  }
  const { lagNow, lagThen, text } = await tailPlace(target, known, to);
  return {
    pipeline,
    position: JSON.parse(text) as SeekPlan["position"],
    lagNow,
    lagThen,
    again: lagNow === null ? null : Math.max(0, lagThen - lagNow),
    skipped: lagNow === null ? null : Math.max(0, lagNow - lagThen),
    parked,
  };
}

/**
 * Puts every lane of a log's pipeline at another place. Only while nobody reads it: what a paused one has in flight is
 * settled and handed over first. New epochs make sure that nothing is written under an old grant any more.
 */
export async function seekLog(target: OperationTarget, known: KnownPipeline, request: SeekRequest): Promise<SeekPlan> {
  const { author, dropParked, to } = request;
  const { database } = target;
  const { pipeline } = known;
  let plan: SeekPlan | null = null;
  await onceFree(database, known, request, async (session) => {
    // Now that nobody reads on: otherwise what is written meanwhile would be counted as skipped.
    plan = await planSeek(target, known, to);
    const { lanes, passed } = database.tables;
    await session.rows(`update ${lanes} set position = $2::jsonb where pipeline = $1`, [
      pipeline,
      JSON.stringify(plan.position),
    ]);
    // Notes of what a ledger has delivered are about events that are asked for again, or left out for good.
    await session.rows(`delete from ${passed} where pipeline = $1`, [pipeline]);
    if (dropParked) await giveUpParked(session, database, pipeline, author);
    await noteLogChange(session, database, "LogSought", pipeline, author, { ...plan, dropParked });
  });
  return plan!;
}

/** Does the work under the lock of all lanes, with new epochs for them. Throws where somebody reads on. */
export async function onceFree(
  database: Database,
  known: KnownPipeline,
  options: HandOverOptions,
  work: (session: Session) => Promise<void>,
): Promise<void> {
  const { pause, pipeline } = known;
  const attempt = () =>
    transaction(
      database.pool,
      { ...writeSettings(database, "moving in a log"), statementTimeoutMs: 15_000 },
      async (session) => {
        const owned = await lockFreeLanes(session, database, pipeline);
        if (owned > 0) return owned;
        await work(session);
        await session.rows(
          `update ${database.tables.lanes} set owner = null, crashes = 0,
           epoch = greatest(epoch + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint) where pipeline = $1`,
          [pipeline],
        );
        await session.rows(`update ${database.tables.pipelines} set lanes_wanted = null where name = $1`, [pipeline]);
        return 0;
      },
    );
  if (pause !== null) return await onceHandedOver(database, known, known.lanes, options, attempt);
  if ((await attempt()) === 0) return;
  const way = `run \`outbox-relay pause '${pipeline}'\` first, and \`outbox-relay resume '${pipeline}'\` afterwards`;
  throw new RelayError("CONFIG_INVALID", `${pipeline} is being read, and its place cannot change under way: ${way}.`);
}

/** Also the dead letters among them: their copies stay, as discarded. */
export async function giveUpParked(
  session: Session,
  { tables }: Database,
  pipeline: string,
  { by, reason }: Author,
): Promise<void> {
  await session.rows(`delete from ${tables.parked} where pipeline = $1`, [pipeline]);
  await session.rows(`delete from ${tables.holds} where pipeline = $1`, [pipeline]);
  await session.rows(
    `update ${tables.failedEvents} set resolved_at = clock_timestamp(), resolution = 'discarded', resolved_by = $2,
       resolution_note = $3 where pipeline = $1 and resolved_at is null`,
    [pipeline, by, reason ?? null],
  );
}

export function requireLog({ log, pipeline }: KnownPipeline): NonNullable<KnownPipeline["log"]> {
  if (log !== null) return log;
  const what = `${pipeline} reads a queue, which has no places: its rows say what is delivered. \`outbox-relay log list\` names the logs`;
  throw new RelayError("CONFIG_INVALID", what);
}

/** What is in the write-ahead log before its slot is gone: one can only go to its end. */
async function walPosition(database: Database, pipeline: string, to: SeekTarget): Promise<string> {
  if (to === "now") return await presentWalPlace(database);
  const what = `${pipeline} reads the write-ahead log, which keeps nothing that was confirmed: only \`--to now\` is possible`;
  throw new RelayError("CONFIG_INVALID", what);
}
