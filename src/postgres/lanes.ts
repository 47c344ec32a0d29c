import { RelayError } from "../core/errors.ts";
import type { Grant, LaneState, Pause, Survey, Takeover } from "../ports/queue-store.ts";
import { grantCondition } from "./grant-condition.ts";
import { readHolds } from "./holds.ts";
import { lockFreeLanesSql, releaseLaneSql, surveySql, takeLanesSql } from "./lanes.sql.ts";
import type { Database } from "./pool.ts";
import type { Row, Session } from "./session.ts";
import { timelineSql } from "./timeline.ts";
import { glance, statement, transaction } from "./transaction.ts";

/** A lane that has just changed its owner. */
export interface TakenLane {
  readonly lane: number;
  /** Null when it was free. */
  readonly formerOwner: string | null;
  /** True when the former owner was another instance and did not release the lane. */
  readonly died: boolean;
}

/** A pipeline with the number of lanes that its keys are hashed to. */
interface LaneScope {
  readonly pipeline: string;
  readonly laneCount: number;
}

/**
 * Values in place of a lane's number in a survey: such a row describes the pipeline's pause, its limit, or its holds.
 */
const PAUSE_ROW = "-1";
const LIMIT_ROW = "-2";
const HOLDS_ROW = "-3";

/** What an adapter does in the transaction in which lanes change their owner. */
interface TakingHooks {
  /** Throws when no lane can be taken over now. */
  readonly mayTake?: (session: Session) => Promise<void>;
  /** Frees durable claims. */
  readonly onTaken?: (session: Session, taken: readonly TakenLane[]) => Promise<void>;
}

/** Reads instances, lanes, pause and limit of a pipeline in one snapshot. */
export async function survey(database: Database, pipeline: string, service: string | null = null): Promise<Survey> {
  const context = database.errorContext("surveying the lanes");
  const rows = await glance(
    database.pool,
    context,
    database.timeouts.statementMs,
    surveySql(database.tables, pipeline, await timelineSql(database), service),
  );
  const instances = rows.filter((row) => row[0] === null).map((row) => row[1] ?? "");
  const wishes = new Map(rows.map((row) => [row[0], row]));
  const lanes = rows.filter((row) => row[0] !== null && Number(row[0]) >= 0).map((row) => laneStateOf(row, row[4]));
  const limit = wishes.get(LIMIT_ROW)?.[4] ?? null;
  return {
    instances: instances.sort(),
    lanes,
    pause: pauseOf(wishes.get(PAUSE_ROW)),
    limitPerSecond: limit === null ? null : Number(limit),
    holdsChange: wishes.get(HOLDS_ROW)?.[4] ?? null,
  };
}

function pauseOf(row: Row | undefined): Pause | null {
  if (row === undefined) return null;
  return { by: row[1] ?? "", reason: row[4] ?? null, handsOver: row[2] !== null };
}

/** `lane, owner, epoch, settled_batch`, as every statement that reads lanes selects them. */
export function laneStateOf([lane, owner, epoch, settledBatch]: Row, timeline?: string | null): LaneState {
  return {
    ...timelineField(timeline),
    lane: Number(lane),
    owner: owner ?? null,
    epoch: BigInt(epoch ?? 0),
    settledBatch: BigInt(settledBatch ?? 0),
  };
}

function timelineField(timeline: string | null | undefined): { readonly timeline?: string } {
  return timeline == null ? {} : { timeline };
}

/** Takes free lanes over and reads their holds, in one transaction. The new epoch fences the former owner. */
export async function takeOver(
  database: Database,
  { pipeline, laneCount }: LaneScope,
  owner: string,
  lanes: readonly number[],
  { mayTake, onTaken }: TakingHooks = {},
): Promise<readonly Takeover[]> {
  const { tables } = database;
  const timeline = await timelineSql(database);
  return await transaction(database.pool, writeSettings(database, "taking lanes over"), async (session) => {
    await mayTake?.(session);
    const locked = await session.rows(lockFreeLanesSql(tables), [pipeline, owner, lanes]);
    if (locked.length === 0) return [];
    const formerOwners = new Map(locked.map((row) => [Number(row[0]), row[1] ?? null]));
    const rows = await session.rows(takeLanesSql(tables, timeline), [
      pipeline,
      owner,
      [...formerOwners.keys()],
      laneCount,
    ]);
    const taken = rows.map((row) => {
      const formerOwner = formerOwners.get(Number(row[0])) ?? null;
      return { lane: Number(row[0]), formerOwner, died: formerOwner !== null && formerOwner !== owner };
    });
    if (taken.length > 0) await onTaken?.(session, taken);
    const holds = await readHolds(
      session,
      database.tables,
      pipeline,
      taken.map(({ lane }) => lane),
    );
    return rows.map(([lane, epoch, settledBatch, crashes, ledgeredBatch, line]) => ({
      grant: { lane: Number(lane), owner, epoch: BigInt(epoch ?? 0), ...timelineField(line) },
      settledBatch: BigInt(settledBatch ?? 0),
      ledgeredBatch: BigInt(ledgeredBatch ?? 0),
      crashes: Number(crashes),
      holds: holds.filter((hold) => hold.lane === Number(lane)),
    }));
  });
}

/** Releases a lane, so that another instance can take it over at once. */
export async function release(
  database: Database,
  pipeline: string,
  grant: Grant,
  suspects: readonly string[],
): Promise<void> {
  await statement(
    database.pool,
    writeSettings(database, "releasing a lane"),
    releaseLaneSql(database.tables, pipeline, grant, suspects),
  );
}

/**
 * Keeps the lane from changing its owner until the end of the transaction, and throws FENCED when it already has. FOR
 * KEY SHARE does not block the settles of the same owner; see the lock table in `lockFreeLanesSql`.
 */
export async function requireGrant(
  session: Session,
  database: Database,
  pipeline: string,
  grant: Grant,
): Promise<void> {
  const condition = grantCondition(pipeline, grant);
  const rows = await session.rows(`select 1 from ${database.tables.lanes} where ${condition} for key share`);
  if (rows.length === 0) throw fenced(pipeline, grant);
}

/** The error of a write under an outdated grant. */
export function fenced(pipeline: string, { lane, epoch }: Grant): RelayError {
  return new RelayError("FENCED", `Lane ${lane} of ${pipeline} is no longer owned at epoch ${epoch}`);
}

/** Settings for transactions that write. */
export function writeSettings(database: Database, doing: string, table?: string) {
  return {
    context: database.errorContext(doing, table),
    statementTimeoutMs: database.timeouts.statementMs,
    lockTimeoutMs: database.timeouts.lockMs,
  };
}
