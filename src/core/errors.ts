export interface ErrorEntry {
  readonly retryable: boolean;
  readonly fix: string;
}

/** Its type has the codes alone: with the texts in it, every package's declarations would repeat them. */
function catalogue<Code extends string>(entries: Readonly<Record<Code, ErrorEntry>>) {
  return entries;
}

/** Every error of the relay by its stable code: whether a retry helps, and what the operator does about it. */
export const ERROR_CATALOGUE = catalogue({
  FENCED: { retryable: false, fix: "Nothing to do: another instance owns this lane now and continues with it." },
  LEASE_LOST: {
    retryable: true,
    fix: "Nothing to do: the relay joins again. If it repeats, raise `INSTANCE_LEASE` (in code: `leaseMs`) or give the process more CPU.",
  },
  DATABASE_UNREACHABLE: {
    retryable: true,
    fix: "Check that the database runs, and its host and port.",
  },
  DATABASE_BUSY: {
    retryable: true,
    fix: "Nothing to do: the relay retries with fewer rows at a time. If it repeats, look for slow triggers and long locks on the outbox table; a larger `INSTANCE_LEASE` gives each statement more time.",
  },
  DATABASE_REFUSED: {
    retryable: true,
    fix: "Read the database's message; a full disk, `DATABASE_URL` and the grants of the role are the usual causes.",
  },
  SCHEMA_MISSING: { retryable: true, fix: "Create the relay's own schema: run the migrations (`migrate up`)." },
  SCHEMA_OLDER: { retryable: true, fix: "Run the migrations (`migrate up`) of this version." },
  SCHEMA_NEWER: {
    retryable: false,
    fix: "A newer relay migrated this database: run that version or roll its migrations back.",
  },
  TABLE_MISSING: { retryable: true, fix: "Create the table or correct its name; the relay checks again by itself." },
  GRANT_MISSING: {
    retryable: true,
    fix: "Grant the role what the message names (`outbox-relay grants <role>` prints all that it needs); the relay checks again by itself.",
  },
  COLUMN_MISSING: { retryable: true, fix: "Add the column, or name the one to use in the source's `columns`." },
  COLUMN_MISTYPED: { retryable: true, fix: "Change the column's type, or name another one in the source's `columns`." },
  INDEX_MISSING: { retryable: true, fix: "Create the index; the relay checks again by itself." },
  ID_NOT_UNIQUE: {
    retryable: true,
    fix: "Make the id unique, or name a column that is (`OUTBOX_COLUMNS=id=column`); the relay checks again by itself. Nothing was marked.",
  },
  TABLE_SHARED: {
    retryable: true,
    fix: "Each event goes to only one of the two deployments. Stop one of them or divide the events by routes; to hand over on purpose, run `outbox-relay pause PIPELINE --hand-over` for the old one.",
  },
  ROWS_HIDDEN: {
    retryable: true,
    fix: "Give the relay's role a policy that shows it all rows (`outbox-relay doctor` prints one) or the attribute BYPASSRLS.",
  },
  ROW_UNMARKED: {
    retryable: true,
    fix: "Remove the trigger, policy or rule that keeps the relay's role from marking the rows. The relay then marks them by itself and continues; it sends none of them again.",
  },
  EVENT_UNREADABLE: { retryable: false, fix: "Correct the row by hand and replay the dead letter." },
  EVENT_TOO_LARGE: {
    retryable: false,
    fix: "Raise `limits.payloadBytesMax`, or store a reference instead of the data, and replay.",
  },
  EVENT_INVALID: {
    retryable: false,
    fix: "Correct what the message names and write the event again; nothing was written.",
  },
  SIGNATURE_INVALID: {
    retryable: false,
    fix: "Answer the request with 401. If it came from your relay, compare its signing secret with the receiver's, and the clocks of both machines.",
  },
  TRANSACTION_MISSING: {
    retryable: false,
    fix: "Begin a transaction, change your data in it, and pass the handle of that transaction.",
  },
  CRASH_POISON: {
    retryable: false,
    fix: "The relay's process ended each time it sent this event: find out why before you replay it.",
  },
  RELAY_MISMATCH: {
    retryable: false,
    fix: "Route this type to a relay of its own, then replay the dead letter.",
  },
  PUBLISH_UNKNOWN: {
    retryable: true,
    fix: "The destination did not answer in time: the relay sends the event again, so it may arrive twice.",
  },
  PUBLISH_FAILED: { retryable: true, fix: "Check the destination; the relay retries by itself." },
  DESTINATION_UNREACHABLE: {
    retryable: true,
    fix: "Check that the broker runs and that its address, user and password are right; the relay retries by itself.",
  },
  TRANSACTIONS_REFUSED: {
    retryable: false,
    fix: "Grant what the message names, or give up exactly-once delivery with `DELIVERY=at-least-once`.",
  },
  LEDGER_UNFIT: {
    retryable: true,
    fix: "Correct the ledger topic as the message says; the relay checks again by itself.",
  },
  LEDGER_GAP: {
    retryable: true,
    fix: "Find out what happened to the ledger or the database; `outbox-relay adopt` continues with what is there.",
  },
  LOG_LOST: {
    retryable: true,
    fix: "Find out what happened to the log; `outbox-relay log seek` starts again at a position of your choice, `outbox-relay adopt` after a restore.",
  },
  SLOT_LOST: {
    retryable: true,
    fix: "The server removed changes before the relay read them: `outbox-relay log reset` starts again with a new slot; find out which changes are missing in between.",
  },
  LOG_UNREACHABLE: {
    retryable: true,
    fix: "Check that the event store runs and that its address, user and password are right; the relay retries by itself.",
  },
  WRONG_REVISION: {
    retryable: true,
    fix: "Concurrent append: read the stream again and retry.",
  },
  QUEUE_FORGOT: {
    retryable: false,
    fix: "Redis lost its data: jobs that were not done yet are gone. Find out since when, go back to that position with `outbox-relay requests seek`, and start again; workers skip requests that have an outcome.",
  },
  STREAM_TRIMMED: {
    retryable: false,
    fix: "Changes left the stream before the runner read them: `outbox-relay dynamodb recover` finds their intents in the table, relays them, and lets the runner continue.",
  },
  CONFLICT: {
    retryable: false,
    fix: "Read it again before you retry: another client changed it first.",
  },
  NOTHING_MATCHES: {
    retryable: false,
    fix: "Nothing was changed. Correct the filter or the id; `outbox-relay dlq groups` and `outbox-relay events list` show what there is.",
  },
  RELAY_STOPPED: {
    retryable: false,
    fix: "A stopped relay cannot start again: create a new one. If it was stopped before it was ready, correct what the message names first.",
  },
  CONFIG_INVALID: { retryable: false, fix: "Correct the setting that the message names." },
  IDENTITY_CHANGED: {
    retryable: false,
    fix: "If this database replaces the old one: `outbox-relay adopt`; if both stay in use: `outbox-relay adopt --as-copy`.",
  },
});

/** The stable code of an error. */
export type ErrorCode = keyof typeof ERROR_CATALOGUE;

/** The one error class of the relay. Its message ends with the code and the fix. */
export class RelayError extends Error {
  readonly code: ErrorCode;
  readonly retryable: boolean;

  constructor(code: ErrorCode, what: string, options?: ErrorOptions) {
    super(`${what} [${code}] ${ERROR_CATALOGUE[code].fix}`, options);
    this.name = "RelayError";
    this.code = code;
    this.retryable = ERROR_CATALOGUE[code].retryable;
  }
}

/** True for an error of the relay, of this code if one is given. */
export function isRelayError(error: unknown, code?: ErrorCode): error is RelayError {
  return error instanceof RelayError && (code === undefined || error.code === code);
}

const EFFECT_UNKNOWN: ReadonlySet<ErrorCode> = new Set([
  "FENCED",
  "LEASE_LOST",
  "DATABASE_UNREACHABLE",
  "IDENTITY_CHANGED",
]);

/** True when the source itself refused a write: nothing of it took effect, so the same write may be repeated. */
export function tookNoEffect(error: unknown): error is RelayError {
  return error instanceof RelayError && !EFFECT_UNKNOWN.has(error.code);
}

/**
 * One line for a log, a hold or a dead letter, from anything that was thrown. Bounded, because it is stored per
 * attempt.
 */
export function reasonOf(error: unknown, lengthMax = 2_000): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 1)}…`;
}

const CAUSES_MAX = 3;

/** The stack of an error and of its causes, for a log; null when it is not an Error. Bounded like a reason. */
export function stackOf(error: unknown, lengthMax = 6_000): string | null {
  if (!(error instanceof Error)) return null;
  let text = error.stack ?? error.message;
  let { cause } = error;
  for (let depth = 0; cause instanceof Error && depth < CAUSES_MAX; depth += 1) {
    text += `\ncaused by ${cause.stack ?? cause.message}`;
    cause = cause.cause;
  }
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 1)}…`;
}

/** The code of a RelayError, or the code that a reason quotes: one of a small fixed set of words. */
export function codeOf(error: unknown, reason: string): ErrorCode | null {
  if (error instanceof RelayError) return error.code;
  const quoted = /\[([A-Z_]+)\]/.exec(reason)?.[1];
  return quoted !== undefined && Object.hasOwn(ERROR_CATALOGUE, quoted) ? (quoted as ErrorCode) : null;
}
