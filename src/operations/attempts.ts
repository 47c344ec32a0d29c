import type { Headers } from "../core/event.ts";
import type { Database } from "../postgres/pool.ts";
import type { Row } from "../postgres/session.ts";
import { transaction } from "../postgres/transaction.ts";
import { type FailedAttempt, headersOf } from "./event-content.ts";
import { operationReadSettings } from "./event-source.ts";
import { isoSql } from "./event-time.ts";

/** An attempt that was recorded, or that a hold or a dead letter remembers: then little more than its error is known. */
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
  /** From the sending to the answer. */
  readonly durationMs: number | null;
  readonly headers: Headers | null;
}

/** With what tells of the event itself, for when its row is gone. */
export interface AttemptOfEvent extends ShownAttempt {
  readonly type: string;
  readonly key: string | null;
  readonly correlationId: string | null;
}

/** The newest of one event that are shown; one that is tried for ever has no end of them. */
const ATTEMPTS_MAX = 200;
/** An error that a hold remembers is of an attempt that was recorded about then: the clocks are two. */
const SAME_MS = 60_000;

/** The oldest first. */
export async function recordedAttempts(database: Database, eventId: string): Promise<readonly AttemptOfEvent[]> {
  if (eventId.includes("\0")) return [];
  const settings = operationReadSettings(database, "reading the attempts of an event");
  const rows = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select ${isoSql("at")}, pipeline, instance, outcome, attempt, reason, error_type, target, ${isoSql("written_at")},
         ${isoSql("claimed_at")}, ${isoSql("sent_at")}, duration_ms, headers::text, event_type, event_key, correlation_id
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

/** What was recorded, and those of the remembered errors that were not, in the order of time. */
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
  return shown.sort((left, right) => Date.parse(left.at) - Date.parse(right.at));
}

function rememberedAttempt(pipeline: string, { at, attempt, reason }: FailedAttempt): ShownAttempt {
  const unknown = { instance: null, errorType: null, target: null, writtenAt: null, claimedAt: null, sentAt: null };
  return { at, pipeline, outcome: "failed", attempt, reason, durationMs: null, headers: null, ...unknown };
}
