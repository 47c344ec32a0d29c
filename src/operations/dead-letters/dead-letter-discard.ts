import type { Session } from "../../postgres/session.ts";
import type { Author } from "../audit/author.ts";
import type { OperationTarget } from "../events/event-source.ts";
import { type Batch, type ChangeReport, changeDeadLetters } from "./dead-letter-change.ts";
import { type DeadLetterChoice, requireChoice } from "./dead-letter-choice.ts";

interface DiscardRequest {
  readonly choice: DeadLetterChoice;
  readonly author: Author & { readonly reason: string };
}

/**
 * Gives events up: they are never sent, events behind them continue, and their copies stay with author, time and
 * reason. Safe with and without a running relay.
 */
export async function discardDeadLetters(
  target: OperationTarget,
  { choice, author }: DiscardRequest,
): Promise<ChangeReport> {
  requireChoice(choice, false);
  const { holds } = target.database.tables;
  return await changeDeadLetters(target, choice, {
    doing: "discarding dead letters",
    resolution: "discarded",
    author,
    apply: (session, batch) => discardBatch(session, holds, batch),
    withoutTable: "done",
  });
}

/**
 * The lock on the hold keeps a concurrent replay from reviving it. An unsettled row without a dead hold is being sent
 * again and is left alone; a row that is marked dead in the table may stay as it is.
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
  return { done, otherwise: "it is being replayed, or was changed concurrently" };
}
