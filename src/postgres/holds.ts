import type { Hold } from "../core/hold.ts";
import type { DeadLetterNote, Failure } from "../ports/queue-store.ts";
import type { EventTable } from "./event-table.ts";
import { copyDeadSql, holdFailuresSql, holdSuspectsSql } from "./holds.sql.ts";
import { quoteLiteral } from "./identifiers.ts";
import type { Database } from "./pool.ts";
import type { RelayTables } from "./relay-tables.ts";
import type { Row, Session } from "./session.ts";
import { glance } from "./transaction.ts";
import { unmarkedSql } from "./unmarked.ts";

/** The lane whose holds are written. The caller has checked its grant in the same transaction. */
export interface HoldScope {
  readonly tables: RelayTables;
  readonly pipeline: string;
  readonly lane: number;
}

/** Columns in the order in which `holdOf` reads them. */
const HOLD_COLUMNS = `event_id, event_key, lane, state, parks, attempts, crashes,
  round(extract(epoch from next_at - clock_timestamp()) * 1000)::bigint, ${unmarkedSql("")}`;

/** The holds of these lanes, the oldest first. */
export async function readHolds(
  session: Session,
  { holds }: RelayTables,
  pipeline: string,
  lanes: readonly number[],
): Promise<readonly Hold[]> {
  if (lanes.length === 0) return [];
  const rows = await session.rows(
    `select ${HOLD_COLUMNS} from ${holds} where pipeline = $1 and lane = any($2::int[]) order by first_failed_at, event_id`,
    [pipeline, lanes],
  );
  return rows.map(holdOf);
}

/** All holds of a lane except dead ones. */
export async function readLivingHolds(database: Database, pipeline: string, lane: number): Promise<readonly Hold[]> {
  const text = `select ${HOLD_COLUMNS} from ${database.tables.holds}
    where pipeline = ${quoteLiteral(pipeline)} and lane = ${lane} and state <> 'dead' order by first_failed_at, event_id`;
  const context = database.errorContext("reading holds");
  return (await glance(database.pool, context, database.timeouts.statementMs, text)).map(holdOf);
}

function holdOf([id, key, lane, state, parks, attempts, crashes, dueInMs, unmarked]: Row): Hold {
  return {
    ...(unmarked === "locked" || unmarked === "refused" ? { unmarked } : {}),
    id: id ?? "",
    key: key ?? null,
    lane: Number(lane),
    state: state === "dead" || state === "suspect" ? state : "retrying",
    parks: parks === "t",
    attempts: Number(attempts),
    crashes: Number(crashes),
    dueInMs: dueInMs == null ? null : Number(dueInMs),
  };
}

interface WrittenFailures {
  /** Ids whose row is no longer pending: they get no hold. */
  readonly gone: readonly string[];
  readonly dead: readonly DeadLetterNote[];
}

/** Holds the failed events, each with the error of every attempt, and copies the dead ones to the dead letters. */
export async function writeFailures(
  session: Session,
  scope: HoldScope,
  table: EventTable,
  failed: readonly Failure[],
): Promise<WrittenFailures> {
  if (failed.length === 0) return { gone: [], dead: [] };
  const { tables, pipeline, lane } = scope;
  const rows = await session.rows(holdFailuresSql(tables, table), [pipeline, lane, ...failureColumns(failed)]);
  const held = new Set(rows.map((row) => row[0]));
  const ids = failed.filter(({ id, next }) => next.kind === "dead" && held.has(id)).map(({ id }) => id);
  const { schema, table: name } = table.name;
  const notes = ids.length === 0 ? [] : await session.rows(copyDeadSql(tables, table), [pipeline, ids, schema, name]);
  const dead = notes.map((row) => JSON.parse(row[0] ?? "") as DeadLetterNote);
  return { gone: failed.filter(({ id }) => !held.has(id)).map(({ id }) => id), dead };
}

/** Parallel arrays for `unnest`: ids, keys, reasons, attempts, delays (null for the dead), parks. */
export function failureColumns(failed: readonly Failure[]): readonly unknown[] {
  return [
    failed.map(({ id }) => id),
    failed.map(({ key }) => key),
    failed.map(({ reason }) => storableText(reason)),
    failed.map(({ attempts }) => attempts),
    failed.map(({ next }) => (next.kind === "retry" ? Math.max(0, Math.round(next.delayMs)) : null)),
    failed.map(({ key, next }) => (next.kind === "retry" ? key !== null : next.parks)),
  ];
}

/** PostgreSQL's text accepts every character except NUL. */
function storableText(text: string): string {
  return text.replaceAll("\0", "\u{FFFD}");
}

/** Notes suspects before they are sent, so that a crash is attributed to them. */
export async function writeSuspects(
  session: Session,
  { tables, pipeline, lane }: HoldScope,
  suspects: readonly { readonly id: string; readonly key: string | null }[],
): Promise<void> {
  if (suspects.length === 0) return;
  const columns = [suspects.map(({ id }) => id), suspects.map(({ key }) => key)];
  await session.rows(holdSuspectsSql(tables), [pipeline, lane, ...columns]);
}

/** Deletes holds by the ids of their events. */
export async function deleteHolds(
  session: Session,
  { tables, pipeline }: HoldScope,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  await session.rows(`delete from ${tables.holds} where pipeline = $1 and event_id = any($2::text[])`, [pipeline, ids]);
}
