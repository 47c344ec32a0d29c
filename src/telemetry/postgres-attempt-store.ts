import type { RecordedAttempt } from "../ports/attempt-recorder.ts";
import type { Database } from "../postgres/pool.ts";
import type { TransactionSettings } from "../postgres/transaction.ts";
import { transaction } from "../postgres/transaction.ts";
import type { AttemptStore } from "./attempt-recorder.ts";

interface PostgresAttemptStoreOptions {
  /** Not the one of the delivery: the store closes it. */
  readonly database: Database;
  /** Who records, as the list of instances names it. */
  readonly instance: string;
  /** Takes secrets out of a text. */
  readonly redact: (text: string) => string;
  /** What is shown of a header's value. */
  readonly redactHeader: (name: string, value: string) => string;
}

const WRITE_MS = 5_000;
/** An index takes no longer entries; nobody can look for such an event here. */
const ID_BYTES_MAX = 1_500;
const TEXT_MAX = 4_000;
const HEADERS_MAX = 200;
const INT_MAX = 2_147_483_647;

/** The table `attempts` of the relay's schema, one statement and one parameter per batch. */
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

/** Nothing here is worth that the delivery waits for the disk: a crash may lose the last moment. */
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

/** Several processes may prune at a time: each takes what no other has. */
function pruneSql(table: string): string {
  return `with old as (select id from ${table} where at < clock_timestamp() - make_interval(secs => $1::float8)
  order by at limit $2 for update skip locked), gone as (delete from ${table} a using old where a.id = old.id returning 1)
select count(*) from gone`;
}

function hasFittingId({ eventId, pipeline }: RecordedAttempt): boolean {
  return Buffer.byteLength(eventId) + Buffer.byteLength(pipeline) <= ID_BYTES_MAX;
}

/** Whatever stands in it, the database takes it: one bad row would keep a whole batch out for ever. */
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

/** Without what is legal in a JavaScript string and refused by the database, and bounded. */
function plain(text: string): string {
  return text.slice(0, TEXT_MAX).toWellFormed().replaceAll("\0", "\uFFFD");
}

/** Only what is a time for the database too. */
function timeOf(text: string | null): string | null {
  if (text === null || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/.test(text)) return null;
  const time = new Date(text);
  return !Number.isNaN(time.getTime()) && time.toISOString().slice(0, 19) === text.slice(0, 19) ? text : null;
}
