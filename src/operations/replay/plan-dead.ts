import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { Session } from "../../postgres/session.ts";
import { choiceCondition, type DeadLetterChoice } from "../dead-letters/dead-letter-choice.ts";

/**
 * Adds the current dead letters to a plan. Events of one key die in the order of writing, since later ones wait while
 * an earlier one is retried. Returns their number.
 */
export async function findDeadLetters(
  session: Session,
  { failedEvents, replayItems }: RelayTables,
  plan: string,
  choice: DeadLetterChoice,
  max: number,
): Promise<number> {
  const [row] = await session.rows(
    `with found as (
       insert into ${replayItems} (plan, seq, pipeline, source, event_id, event_key, event_type, fingerprint, was)
       select $1::uuid, row_number() over (order by d.first_failed_at, d.event_created_at, d.id), d.pipeline,
         d.source_schema || '.' || d.source_table, d.original_event_id, d.event_key, d.event_type, d.fingerprint,
         jsonb_build_object('letter', d.id, 'lastFailedAt', d.last_failed_at)
       from ${failedEvents} d where ${choiceCondition({ ...choice, resolved: false })} limit ${max}
       returning 1)
     select count(*) from found`,
    [plan],
  );
  return Number(row?.[0]);
}
