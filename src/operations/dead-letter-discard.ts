import type { Session } from "../postgres/session.ts";
import type { Author } from "./author.ts";
import { type Batch, type ChangeReport, changeDeadLetters } from "./dead-letter-change.ts";
import { type DeadLetterChoice, requireChoice } from "./dead-letter-choice.ts";
import type { OperationTarget } from "./event-source.ts";

interface DiscardRequest {
  readonly choice: DeadLetterChoice;
  readonly author: Author & { readonly reason: string };
  readonly progress?: (done: number, total: number) => void;
}

/**
 * These events will never be sent. Their rows are not read again, what waits behind them goes on, and their copies stay
 * with who did it, when and why. Safe beside a running relay and without one.
 */
export async function discardDeadLetters(
  target: OperationTarget,
  { choice, author, progress }: DiscardRequest,
): Promise<ChangeReport> {
  requireChoice(choice, false);
  const { holds } = target.database.tables;
  return await changeDeadLetters(target, choice, {
    doing: "discarding dead letters",
    resolution: "discarded",
    author,
    apply: (session, batch) => discardBatch(session, holds, batch),
    withoutTable: "done",
    progress,
  });
}

/**
 * The lock on the hold keeps others from reviving it meanwhile. A row that waits without a dead hold is on its way
 * again and is left alone; where the row itself says dead, it may stay as it is.
 */
export async function discardBatch(session: Session, holds: string, { source, pipeline, ids }: Batch) {
  const { table, givenUp, isParked, setAside } = source;
  const held = await session.rows(
    `select event_id from ${holds} where pipeline = $1 and event_id = any($2::text[]) and state = 'dead'
     order by event_id for update`,
    [pipeline, ids],
  );
  const wanted = `${table.id} = any($1::text[]::${table.idType}[])`;
  const isWaiting = givenUp === null ? table.unsettled : `(${table.unsettled} and not ${givenUp})`;
  const heldIds = held.map((row) => row[0] ?? "");
  if (isParked) {
    await session.rows(`delete from ${table.quotedName} t where ${wanted} and ${isWaiting}`, [heldIds]);
  } else if (setAside !== null) {
    await session.rows(`update ${table.quotedName} t set ${setAside} where ${wanted} and ${isWaiting}`, [heldIds]);
  }
  const waiting = await session.rows(
    `select ${table.id}::text from ${table.quotedName} t where ${wanted} and ${isWaiting}`,
    [ids],
  );
  const isOnItsWay = new Set(waiting.map((row) => row[0]));
  const done = ids.filter((id) => !isOnItsWay.has(id));
  await session.rows(`delete from ${holds} where pipeline = $1 and event_id = any($2::text[]) and state = 'dead'`, [
    pipeline,
    done,
  ]);
  return { done, otherwise: "it waits to be sent again, or somebody else was faster" };
}
