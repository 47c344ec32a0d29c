import type { RecordedAttempt } from "../../ports/attempt-recorder.ts";
import type { Database } from "../../postgres/pool.ts";
import type { TransactionSettings } from "../../postgres/transaction.ts";
import { transaction } from "../../postgres/transaction.ts";
import type { AttemptStore } from "./attempt-recorder.ts";

interface PostgresAttemptStoreOptions {
  /** Separate from the delivery's: the store closes it. */
  readonly database: Database;
  /** The name of the recording instance, as in the list of instances. */
  readonly instance: string;
  /** Removes secrets from a text. */
  readonly redact: (text: string) => string;
  /** Redacts a header's value for display. */
  readonly redactHeader: (name: string, value: string) => string;
}

const WRITE_MS = 5_000;
/** An index accepts no longer entries, so attempts of such an event are not recorded. */
const ID_BYTES_MAX = 1_500;
const TEXT_MAX = 4_000;
const HEADERS_MAX = 200;
const INT_MAX = 2_147_483_647;

/** Writes to the table `attempts` of the relay's schema: one statement with one parameter per batch. */
export function postgresAttemptStore(options: PostgresAttemptStoreOptions): AttemptStore {
  const { database, instance } = options;
  const insert = insertSql(database.tables.attempts);
  const prune = pruneSql(database.tables.attempts);
  return {
    async append(attempts) {
      const rows = attempts.filter(hasFittingId).map((attempt) => rowOf(attempt, options));
      if (rows.length === 0) return;
      await transaction(database.pool, settingsOf(database, "recording attempts"), (session) =>
        session.rows(insert, [JSON.stringify(rows), plain(instance)]),
      );
    },
    async prune(olderThanMs, rows) {
      const [row] = await transaction(database.pool, settingsOf(database, "pruning attempts"), (session) =>
        session.rows(prune, [olderThanMs / 1_000, rows]),
      );
      return Number(row?.[0] ?? 0);
    },
    close: () => database.close(),
  };
}

/** Attempts need no wait for the disk: a crash can lose the last moment. */
function settingsOf(database: Database, doing: string): TransactionSettings {
  return {
    context: database.errorContext(doing),
    statementTimeoutMs: WRITE_MS,
    lockTimeoutMs: WRITE_MS,
    settings: { synchronous_commit: "off" },
  };
}

function insertSql(table: string): string {
  return `insert into ${table} (at, pipeline, event_id, event_type, event_key, correlation_id, instance, outcome, attempt,
  reason, error_type, target, written_at, claimed_at, sent_at, duration_ms, headers)
select to_timestamp(a.at_ms / 1000), a.pipeline, a.event_id, a.event_type, a.event_key, a.correlation_id, $2, a.outcome,
  a.attempt, a.reason, a.error_type, a.target, a.written_at, to_timestamp(a.claimed_at_ms / 1000),
  to_timestamp(a.sent_at_ms / 1000), a.duration_ms, a.headers
from rows from (jsonb_to_recordset($1::jsonb) as (at_ms float8, pipeline text, event_id text, event_type text,
  event_key text, correlation_id text, outcome text, attempt int, reason text, error_type text, target text,
  written_at timestamptz, claimed_at_ms float8, sent_at_ms float8, duration_ms float8, headers jsonb))
  with ordinality as a(at_ms, pipeline, event_id, event_type, event_key, correlation_id, outcome, attempt, reason,
  error_type, target, written_at, claimed_at_ms, sent_at_ms, duration_ms, headers, position)
order by a.position`;
}

/** Several processes can prune at the same time: each skips the rows that another has locked. */
function pruneSql(table: string): string {
  return `with old as (select id from ${table} where at < clock_timestamp() - make_interval(secs => $1::float8)
  order by at limit $2 for update skip locked), gone as (delete from ${table} a using old where a.id = old.id returning 1)
select count(*) from gone`;
}

function hasFittingId({ eventId, pipeline }: RecordedAttempt): boolean {
  return Buffer.byteLength(eventId) + Buffer.byteLength(pipeline) <= ID_BYTES_MAX;
}

/** Cleans every value so that the database accepts it: one bad row would fail its whole batch for ever. */
function rowOf(attempt: RecordedAttempt, { redact, redactHeader }: PostgresAttemptStoreOptions) {
  const { correlationId, errorType, eventKey, headers, reason } = attempt;
  return {
    at_ms: attempt.atMs,
    pipeline: plain(attempt.pipeline),
    event_id: plain(attempt.eventId),
    event_type: plain(attempt.eventType),
    event_key: eventKey === null ? null : plain(eventKey),
    correlation_id: correlationId === null ? null : plain(correlationId),
    outcome: attempt.outcome,
    attempt: Math.min(INT_MAX, attempt.attempt),
    reason: reason === null ? null : plain(redact(reason)),
    error_type: errorType === null ? null : plain(errorType),
    target: plain(redact(attempt.target)),
    written_at: timeOf(attempt.writtenAt),
    claimed_at_ms: attempt.claimedAtMs,
    sent_at_ms: attempt.sentAtMs,
    duration_ms: attempt.durationMs,
    headers:
      headers === null
        ? null
        : Object.fromEntries(
            Object.entries(headers)
              .slice(0, HEADERS_MAX)
              .map(([name, value]) => [plain(name), plain(redact(redactHeader(name, value)))]),
          ),
  };
}

/** Bounded, and without the characters that JavaScript strings allow but the database rejects. */
function plain(text: string): string {
  return text.slice(0, TEXT_MAX).toWellFormed().replaceAll("\0", "\uFFFD");
}

/** Null unless the database accepts the text as a time. */
function timeOf(text: string | null): string | null {
  if (text === null || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/.test(text)) return null;
  const time = new Date(text);
  return !Number.isNaN(time.getTime()) && time.toISOString().slice(0, 19) === text.slice(0, 19) ? text : null;
}
