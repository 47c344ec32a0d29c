import type { EventHeaders } from "../../core/event.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Row } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { attemptNumbers, type FailedAttempt, headersOf } from "./event-content.ts";
import { operationReadSettings } from "./event-source.ts";
import { isoSql } from "./event-time.ts";

/**
 * An attempt that was recorded, or that only a hold or dead letter remembers: then little more than its error is known.
 */
export interface ShownAttempt {
  readonly at: string;
  readonly pipeline: string;
  readonly instance: string | null;
  readonly outcome: "delivered" | "failed" | "dead";
  readonly attempt: number;
  readonly reason: string | null;
  readonly errorType: string | null;
  readonly target: string | null;
  readonly writtenAt: string | null;
  readonly claimedAt: string | null;
  readonly sentAt: string | null;
  /** From the request to its response. */
  readonly durationMs: number | null;
  readonly headers: EventHeaders | null;
}

/** Also has fields of the event itself, for when its row is gone. */
export interface AttemptOfEvent extends ShownAttempt {
  readonly type: string;
  readonly key: string | null;
  readonly correlationId: string | null;
}

/** The newest attempts of an event that are shown; an event may be retried without limit. */
const ATTEMPTS_MAX = 200;
/** A hold's error and a recorded attempt within this time are the same attempt: they come from two clocks. */
const SAME_MS = 60_000;

/** In the order in which `attemptOf` reads them. */
const ATTEMPT_COLUMNS = `${isoSql("at")}, pipeline, instance, outcome, attempt, reason, error_type, target,
  ${isoSql("written_at")}, ${isoSql("claimed_at")}, ${isoSql("sent_at")}, duration_ms, headers::text, event_type, event_key,
  correlation_id`;
const MANY_MAX = 2_000;

/** Attempts of several events, oldest first; of very many the newest. */
export async function attemptsOfMany(
  database: Database,
  eventIds: readonly string[],
): Promise<readonly (AttemptOfEvent & { readonly eventId: string })[]> {
  const ids = eventIds.filter((id) => !id.includes("\0"));
  if (ids.length === 0) return [];
  const settings = operationReadSettings(database, "reading the attempts of several events");
  const rows = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select ${ATTEMPT_COLUMNS}, event_id from ${database.tables.attempts} where event_id = any($1::text[])
       order by at desc, id desc limit ${MANY_MAX}`,
      [ids],
    ),
  );
  return rows.map((row) => ({ ...attemptOf(row), eventId: row.at(-1) ?? "" })).reverse();
}

/** Recorded attempts of an event, oldest first. */
export async function recordedAttempts(database: Database, eventId: string): Promise<readonly AttemptOfEvent[]> {
  if (eventId.includes("\0")) return [];
  const settings = operationReadSettings(database, "reading the attempts of an event");
  const rows = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select ${ATTEMPT_COLUMNS}
       from ${database.tables.attempts} where event_id = $1 order by at desc, id desc limit ${ATTEMPTS_MAX}`,
      [eventId],
    ),
  );
  return rows.map(attemptOf).reverse();
}

function attemptOf(row: Row): AttemptOfEvent {
  return {
    at: row[0] ?? "",
    pipeline: row[1] ?? "",
    instance: row[2] ?? null,
    outcome: row[3] as ShownAttempt["outcome"],
    attempt: Number(row[4]),
    reason: row[5] ?? null,
    errorType: row[6] ?? null,
    target: row[7] ?? null,
    writtenAt: row[8] ?? null,
    claimedAt: row[9] ?? null,
    sentAt: row[10] ?? null,
    durationMs: row[11] == null ? null : Number(row[11]),
    headers: row[12] == null ? null : headersOf(row[12]),
    type: row[13] ?? "",
    key: row[14] ?? null,
    correlationId: row[15] ?? null,
  };
}

interface Remembered {
  readonly pipeline: string;
  readonly errors: readonly FailedAttempt[];
}

/** Merges recorded attempts with remembered errors that were not recorded, in order of time. */
export function withRemembered(
  recorded: readonly AttemptOfEvent[],
  remembered: readonly Remembered[],
): readonly ShownAttempt[] {
  const shown: ShownAttempt[] = recorded.map(({ type: _, key: __, correlationId: ___, ...attempt }) => attempt);
  for (const { pipeline, errors } of remembered) {
    for (const { at, attempt, reason } of errors) {
      const atMs = Date.parse(at);
      if (Number.isNaN(atMs) || !Number.isSafeInteger(attempt)) continue;
      const isSame = (other: ShownAttempt) =>
        other.pipeline === pipeline && other.attempt === attempt && Math.abs(Date.parse(other.at) - atMs) < SAME_MS;
      if (!shown.some(isSame))
        shown.push(rememberedAttempt(pipeline, { at: new Date(atMs).toISOString(), attempt, reason }));
    }
  }
  const ordered = shown.sort((left, right) => Date.parse(left.at) - Date.parse(right.at));
  const numbers = new Map<string, NumberOf>();
  return ordered.map((it) => {
    const numberOf = numbers.get(it.pipeline) ?? attemptNumbers();
    numbers.set(it.pipeline, numberOf);
    return { ...it, attempt: numberOf(it.attempt) };
  });
}

type NumberOf = ReturnType<typeof attemptNumbers>;

function rememberedAttempt(pipeline: string, { at, attempt, reason }: FailedAttempt): ShownAttempt {
  const unknown = { instance: null, errorType: null, target: null, writtenAt: null, claimedAt: null, sentAt: null };
  return { at, pipeline, outcome: "failed", attempt, reason, durationMs: null, headers: null, ...unknown };
}
