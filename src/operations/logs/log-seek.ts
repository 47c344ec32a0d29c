import { RelayError } from "../../core/errors.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { currentWalPosition } from "../../sources/postgres/wal/replication.ts";
import { noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import type { OperationTarget } from "../events/event-source.ts";
import { type HandOverOptions, lockFreeLanes, onceHandedOver } from "../pipelines/hand-over.ts";
import type { KnownPipeline } from "../pipelines/pipelines.ts";
import { parkedCounts } from "./log-list.ts";
import { type SeekTarget, tailPlace } from "./log-place.ts";

/** What a seek would do. */
export interface SeekPlan {
  readonly pipeline: string;
  /** The position that every lane gets. */
  readonly position: Readonly<Record<string, unknown>>;
  /** Unread events now and after the seek; null when they cannot be counted. Capped at 10,001. */
  readonly lagNow: number | null;
  readonly lagThen: number | null;
  /** Delivered events that would be sent again, and undelivered ones that would be skipped. */
  readonly again: number | null;
  readonly skipped: number | null;
  readonly parked: number;
}

interface SeekRequest extends HandOverOptions {
  readonly to: SeekTarget;
  /** Also drops the events that wait beside the log. */
  readonly dropParked: boolean;
  readonly author: Author;
}

/** What a seek would do. Read-only. */
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
 * Moves every lane of a log's pipeline to another position. Only while no instance reads it: events in flight of a
 * paused pipeline are settled and its lanes handed over first. New epochs fence writes under old lane grants.
 */
export async function seekLog(target: OperationTarget, known: KnownPipeline, request: SeekRequest): Promise<SeekPlan> {
  const { author, dropParked, to } = request;
  const { database } = target;
  const { pipeline } = known;
  let plan: SeekPlan | null = null;
  await onceFree(database, known, request, async (session) => {
    // Counted after all reading has stopped: otherwise events written meanwhile would count as skipped.
    plan = await planSeek(target, known, to);
    const { lanes, passed } = database.tables;
    await session.rows(`update ${lanes} set position = $2::jsonb where pipeline = $1`, [
      pipeline,
      JSON.stringify(plan.position),
    ]);
    // Notes of delivered ledger entries are about events that are either sent again or skipped permanently.
    await session.rows(`delete from ${passed} where pipeline = $1`, [pipeline]);
    if (dropParked) await giveUpParked(session, database, pipeline, author);
    const detail = { ...plan, dropParked };
    await noteAction(session, database, author, { action: "log-seek", target: pipeline, detail });
  });
  return plan!;
}

/** Runs the work under the lock of all lanes, with new epochs for them. Throws while an instance reads. */
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
      { ...writeSettings(database, "seeking in a log"), statementTimeoutMs: 15_000 },
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
  throw new RelayError(
    "CONFIG_INVALID",
    `${pipeline} is being read, and its position cannot change meanwhile: ${way}.`,
  );
}

/** Includes the dead letters: their copies stay, as discarded. */
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
  const what = `${pipeline} reads a queue, which has no positions: its rows record what is delivered. \`outbox-relay log list\` names the logs`;
  throw new RelayError("CONFIG_INVALID", what);
}

/** The log before the slot's position is gone: a seek can only go to its end. */
async function walPosition(database: Database, pipeline: string, to: SeekTarget): Promise<string> {
  if (to === "now") return await currentWalPosition(database);
  const what = `${pipeline} reads the write-ahead log, which keeps nothing that was confirmed: only \`--to now\` is possible`;
  throw new RelayError("CONFIG_INVALID", what);
}
