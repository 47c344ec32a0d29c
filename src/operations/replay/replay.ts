import type { Session } from "../../postgres/session.ts";
import type { Author } from "../audit/author.ts";
import { type Batch, type ChangeReport, changeDeadLetters } from "../dead-letters/dead-letter-change.ts";
import type { DeadLetterChoice } from "../dead-letters/dead-letter-choice.ts";
import type { OperationTarget } from "../events/event-source.ts";

/** One event, by its id or its letter's. Several are replayed by a plan, which tries one of each stratum first. */
type OneDeadLetter = DeadLetterChoice & { readonly ids: readonly [string] };

/**
 * Replays a dead letter from the first attempt: the owner of its lane finds its hold due within seconds. A head that
 * parked its key still goes first, and the events behind it follow. Safe with and without a running relay.
 */
export async function replayDeadLetter(
  target: OperationTarget,
  choice: OneDeadLetter,
  author: Author,
): Promise<ChangeReport> {
  const { holds } = target.database.tables;
  return await changeDeadLetters(target, choice, {
    doing: "replaying a dead letter",
    resolution: "replayed",
    author,
    apply: (session, batch) => replayBatch(session, holds, batch),
    withoutTable: "left",
  });
}

/**
 * Where the row records that it was given up, the row decides: one that is waiting or delivered is left alone.
 * Otherwise the hold does. Several dead events of one key become due one after the other, in the order of writing.
 */
export async function replayBatch(session: Session, holds: string, { source, pipeline, ids }: Batch) {
  const { table, order, givenUp, setBack } = source;
  const otherwise = "its row is gone, was delivered or waits already, or it was changed concurrently";
  await session.rows(
    `select 1 from ${holds} where pipeline = $1 and event_id = any($2::text[]) and state = 'dead'
     order by event_id for update`,
    [pipeline, ids],
  );
  const wanted = `${table.id} = any($1::text[]::${table.idType}[])`;
  const fit = setBack === null ? table.unsettled : givenUp;
  const waiting =
    setBack === null
      ? ids
      : (
          await session.rows(
            `update ${table.quotedName} t set ${setBack} where ${wanted} and ${fit} returning ${table.id}::text`,
            [ids],
          )
        ).map((row) => row[0] ?? "");
  const revived = await session.rows(
    `with ranked as (
       select h.event_id, row_number() over (partition by h.event_key order by ${order}, ${table.id}) as rank
       from ${holds} h join ${table.quotedName} t on ${table.id} = h.event_id::${table.idType}
       where h.pipeline = $1 and h.event_id = any($2::text[]) and h.state = 'dead' and ${table.unsettled})
     update ${holds} h set state = 'retrying', attempts = 0, crashes = 0, parks = h.event_key is not null,
       next_at = clock_timestamp() + r.rank * interval '1 millisecond'
     from ranked r where h.pipeline = $1 and h.event_id = r.event_id returning h.event_id`,
    [pipeline, waiting],
  );
  return { done: setBack === null ? revived.map((row) => row[0] ?? "") : waiting, otherwise };
}
