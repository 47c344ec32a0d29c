import { reasonOf } from "../core/errors.ts";
import type { Unmarked } from "../core/hold.ts";
import { isRowError } from "./errors.ts";
import type { EventTable } from "./event-table.ts";
import type { HoldScope } from "./holds.ts";
import { quoteArray, quoteLiteral } from "./identifiers.ts";
import type { Session } from "./session.ts";

/** A hold of such an event is recognized by its reason, so these stored texts must never change. */
const REASONS: Readonly<Record<Unmarked, string>> = {
  locked: "Delivered; another transaction has locked its row, which is marked later",
  refused: "Delivered, but its row could not be marked [ROW_UNMARKED]",
};

/** The kind of an unmarked hold, or null; over `holds` with this prefix. */
export function unmarkedSql(prefix: string): string {
  const cases = Object.entries(REASONS).map(([kind, reason]) => `when ${quoteLiteral(reason)} then '${kind}'`);
  return `case ${prefix}reason ${cases.join(" ")} end`;
}

/**
 * Holds the delivered events whose rows are still pending, so that no run shows them again. Returns their ids. They are
 * due in a hundred years: they must only be marked, not sent again. Their keys are not parked.
 */
export async function holdUnmarked(
  session: Session,
  { tables, pipeline, lane }: HoldScope,
  table: EventTable,
  ids: readonly string[],
  kind: Unmarked,
): Promise<ReadonlyMap<string, Unmarked>> {
  if (ids.length === 0) return new Map();
  const rows = await session.rows(
    `insert into ${tables.holds} as h (pipeline, lane, event_id, event_key, state, parks, attempts, next_at, reason)
     select $1::text, $2::int, ${table.id}::text, ${table.key}, 'retrying', false, 0,
       clock_timestamp() + interval '100 years', $3::text
     from ${table.quotedName} t
     where ${table.id} = any(${quoteArray(ids)}::${table.idType}[]) and ${table.unsettled}
     on conflict (pipeline, event_id) do update set lane = excluded.lane, state = excluded.state, parks = false,
       next_at = excluded.next_at, reason = excluded.reason
     returning h.event_id`,
    [pipeline, lane, REASONS[kind]],
  );
  return new Map(rows.map((row) => [row[0] ?? "", kind]));
}

/** A lock that lasts longer than this is not ordinary: it must be reported. */
const LOCKED_MAX = "1 minute";

/** Turns long locked rows into refused ones, which are reported. Takes `$1` pipeline and `$2` lane. */
export const outlastedLocksSql = ({ tables }: Pick<HoldScope, "tables">): string =>
  `update ${tables.holds} set reason = ${quoteLiteral(REASONS.refused)}
   where pipeline = $1 and lane = $2 and reason = ${quoteLiteral(REASONS.locked)}
     and first_failed_at < clock_timestamp() - interval '${LOCKED_MAX}'`;

/** With this many refused rows in one write the rest is not tried: those rows could probably not be marked either. */
const REFUSED_MAX = 10;

/** The rows that a write left out. */
interface LeftOut {
  /** Rows that were refused, and the rest that was not tried any more. */
  readonly ids: readonly string[];
  /** The first error; null when all rows were written. */
  readonly reason: string | null;
}

/**
 * Writes rows in ever smaller halves, until each row that makes the statement fail is alone and left out. Errors that
 * no single row causes are thrown.
 */
export async function writeApart(
  session: Session,
  ids: readonly string[],
  write: (ids: readonly string[]) => Promise<void>,
): Promise<LeftOut> {
  const waiting = ids.length === 0 ? [] : [ids];
  const refused: string[] = [];
  let reason: string | null = null;
  while (waiting.length > 0 && refused.length < REFUSED_MAX) {
    const part = waiting.pop() ?? [];
    const error = await errorOfRow(session, () => write(part));
    if (error === null) continue;
    reason ??= reasonOf(error);
    const half = Math.floor(part.length / 2);
    if (half === 0) refused.push(...part);
    else waiting.push(part.slice(half), part.slice(0, half));
  }
  return { ids: [...refused, ...waiting.flat()], reason };
}

/** The error with which one of the rows made the work fail, of which then nothing took effect. */
async function errorOfRow(session: Session, work: () => Promise<void>): Promise<unknown> {
  await session.rows("savepoint marking");
  try {
    await work();
    await session.rows("release savepoint marking");
    return null;
  } catch (error) {
    if (!isRowError(error)) throw error;
    await session.rows("rollback to savepoint marking");
    return error;
  }
}

/** Deferred constraints and triggers fail at once, where a single row can be left out, and not at the commit. */
export async function checkAtOnce(session: Session): Promise<void> {
  await session.rows("set constraints all immediate");
}
