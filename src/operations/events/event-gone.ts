import type { Database } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";
import type { ShownDeadLetter } from "../dead-letters/dead-letter-list.ts";
import { knownPipelines } from "../pipelines/pipelines.ts";
import type { AttemptOfEvent } from "./attempts.ts";
import type { EventState } from "./event-filter.ts";
import type { ListedEvent } from "./event-list.ts";
import { type OperationTarget, operationReadSettings } from "./event-source.ts";
import { isoSql } from "./event-time.ts";

/** An event without a row: deleted after its retention, or never visible, as in the write-ahead log. */
export interface GoneEvent {
  readonly event: ListedEvent;
  readonly pipelines: readonly string[];
  /** The newest copy, if the event ever was a dead letter. */
  readonly letter: ShownDeadLetter | null;
}

/** What dead letters and recorded attempts still know, one event per source. */
export async function goneEvents(
  { database }: OperationTarget,
  id: string,
  wantedSource: string | undefined,
  { attempts, letters }: { readonly attempts: readonly AttemptOfEvent[]; readonly letters: readonly ShownDeadLetter[] },
): Promise<readonly GoneEvent[]> {
  if (attempts.length === 0 && letters.length === 0) return [];
  const known = new Map((await knownPipelines(database)).map(({ pipeline, source }) => [pipeline, source]));
  const sourceOf = (pipeline: string) => known.get(pipeline) ?? pipeline.slice(0, pipeline.lastIndexOf("->"));
  const names = new Set([
    ...letters.map(({ source }) => source),
    ...attempts.map(({ pipeline }) => sourceOf(pipeline)),
  ]);
  const holds = await holdsOf(database, id);
  return [...names]
    .filter((name) => wantedSource === undefined || name === wantedSource)
    .sort()
    .map((source) => {
      const own = attempts.filter(({ pipeline }) => sourceOf(pipeline) === source);
      const [letter = null] = letters.filter((it) => it.source === source);
      const pipelines = [...new Set([...own, ...(letter === null ? [] : [letter])].map(({ pipeline }) => pipeline))];
      const hold = holds.find(({ pipeline }) => sourceOf(pipeline) === source);
      return { event: eventOf(id, source, { last: own.at(-1), letter, hold }), pipelines, letter };
    });
}

interface LivingHold {
  readonly pipeline: string;
  readonly attempts: number;
  readonly reason: string | null;
  readonly nextAttemptAt: string | null;
}

/** The hold of an event that is retried: no table shows events from the write-ahead log. */
async function holdsOf(database: Database, id: string): Promise<readonly LivingHold[]> {
  const settings = operationReadSettings(database, "looking for the hold of an event");
  const rows = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select pipeline, attempts, reason, ${isoSql("next_at")} from ${database.tables.holds}
       where event_id = $1 and state <> 'dead' and pipeline = any(array(select name from ${database.tables.pipelines}))`,
      [id],
    ),
  );
  return rows.map(([pipeline, attempts, reason, nextAttemptAt]) => ({
    pipeline: pipeline ?? "",
    attempts: Number(attempts),
    reason: reason ?? null,
    nextAttemptAt: nextAttemptAt ?? null,
  }));
}

interface Memory {
  readonly last: AttemptOfEvent | undefined;
  readonly letter: ShownDeadLetter | null;
  readonly hold: LivingHold | undefined;
}

function eventOf(id: string, source: string, memory: Memory): ListedEvent {
  const { hold, last, letter } = memory;
  const about = letter ?? last;
  const state = stateOf(memory);
  const hasFailed = state === "dead" || last?.outcome !== "delivered";
  return {
    source,
    id,
    type: about?.type ?? "",
    key: about?.key ?? null,
    correlationId: about?.correlationId ?? null,
    createdAt: letter?.createdAt ?? last?.writtenAt ?? null,
    state,
    attempts: hold?.attempts ?? letter?.failures ?? (hasFailed ? (last?.attempt ?? null) : null),
    reason: hold?.reason ?? (hasFailed ? (letter?.reason ?? last?.reason ?? null) : null),
    nextAttemptAt: hold?.nextAttemptAt ?? null,
    parkedBehind: null,
    pipeline: hold?.pipeline ?? letter?.pipeline ?? last?.pipeline ?? null,
    waitsFor: null,
  };
}

/** A replayed event without a row was delivered: rows are only deleted then. */
function stateOf({ hold, last, letter }: Memory): EventState {
  if (letter !== null && letter.resolution === null) return "dead";
  if (hold !== undefined) return "retrying";
  if (letter?.resolution?.how === "discarded") return "discarded";
  return letter !== null || last?.outcome === "delivered" ? "delivered" : "discarded";
}
