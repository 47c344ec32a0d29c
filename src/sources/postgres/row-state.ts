import type { ColumnFinder } from "../../postgres/column-finder.ts";
import {
  CANDIDATES,
  type ColumnInfo,
  type ColumnNames,
  FLAG_CANDIDATES,
  isBoolean,
  isText,
  isTimestamp,
} from "../../postgres/column-names.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";

/** What a row says about its state, and what is written into it. Conditions are never null. */
export interface RowState {
  /** Pending, now or later: any flag can say so. */
  readonly unsettled: string;
  /** Available now; no other condition implies it. `true` where rows have no time of their own. */
  readonly available: string;
  /** Not to be sent before this timestamptz; null where rows have no time of their own. */
  readonly scheduledAt: string | null;
  /**
   * The part of `unsettled` that an index finds, and the rest: rows whose flags contradict each other. No index serves
   * both at once, and the rest is nearly always empty, so it is checked only from time to time. Null when there is no
   * rest, or when no flag has an index and the split would not help.
   */
  readonly main: string;
  readonly conflicts: string | null;
  readonly delivered: string;
  /** When it was delivered, for retention; null where no column shows it. */
  readonly deliveredAt: string | null;
  /** Assignments. */
  readonly markDelivered: string;
  /** Assignments that use `f.reason`, `f.attempts` and `f.delay_ms` (null for the dead); null when there are none. */
  readonly markFailed: string | null;
  /** True for a row that is dead in the table itself; null where the table cannot express it. */
  readonly givenUp: string | null;
  /** Assignments that make such a row pending again, from the first attempt; null where there is none. */
  readonly setBack: string | null;
  /** Assignments that make a delivered row pending again, as if it had never been sent. */
  readonly unmark: string;
}

interface Context {
  readonly attempts: ColumnInfo | null;
  readonly createdAt: ColumnInfo | null;
  readonly indexes: readonly string[];
}

const STATUS = { pending: "'Pending'", delivered: "'Dispatched'", dead: "'Failed'" } as const;
const DEAD_FOR_DAYS = 365;

/**
 * Finds out how rows of this table express their state. Throws COLUMN_MISSING when neither flags nor a status are
 * there.
 */
export function rowStateOf(finder: ColumnFinder, names: ColumnNames, context: Context): RowState {
  const flags = findFlags(finder, names);
  const status = finder.find({
    role: "the status",
    named: names.status,
    candidates: CANDIDATES.status,
    fits: isText,
    type: "text or an enum",
  });
  const nextAttemptAt = finder.find({
    role: "the time of the next attempt",
    named: names.nextAttemptAt,
    candidates: CANDIDATES.nextAttemptAt,
    fits: isTimestamp,
    type: "a timestamp",
  });
  const notes = failureNotes(finder, names, context.attempts);
  if (status && (nextAttemptAt || flags.length === 0)) {
    const { attempts, createdAt } = context;
    return statusState(status, nextAttemptAt, { flags, notes, attempts, createdAt });
  }
  if (flags.length > 0) return flagState(flags, notes, context);
  throw finder.missing("what is published", [...FLAG_CANDIDATES, "status with next_attempt_at"]);
}

function findFlags(finder: ColumnFinder, names: ColumnNames): readonly ColumnInfo[] {
  const flags = names.flags ?? FLAG_CANDIDATES.filter((name) => finder.has(name));
  return flags.map((name) => {
    const isTime = names.flags === undefined && name !== "published";
    const isYes = names.flags === undefined && name === "published";
    return finder.require({
      role: "what is published",
      named: name,
      candidates: [],
      fits: (column) => (isBoolean(column) && !isTime) || (isTimestamp(column) && !isYes),
      type: isTime ? "a timestamp" : isYes ? "boolean" : "boolean or a timestamp",
    });
  });
}

const unflagged = (flag: ColumnInfo): string => `${t(flag)} ${isBoolean(flag) ? "is not true" : "is null"}`;
/** In the form that people use for the condition of their partial index: the planner compares the text. */
const unflaggedAsIndexed = (flag: ColumnInfo): string => `${t(flag)} ${isBoolean(flag) ? "= false" : "is null"}`;
const setFlag = (flag: ColumnInfo): string => `${set(flag)} = ${isBoolean(flag) ? "true" : "clock_timestamp()"}`;

const clearFlag = (flag: ColumnInfo): string => `${set(flag)} = ${isBoolean(flag) ? "false" : "null"}`;

function flagState(flags: readonly ColumnInfo[], notes: readonly string[], context: Context): RowState {
  const indexed = flags.find((flag) => context.indexes.some((index) => isIndexed(flag, index)));
  const unsettled = `(${flags.map(unflagged).join(" or ")})`;
  const isDivided = indexed !== undefined && (flags.length > 1 || isBoolean(indexed));
  const main = isDivided ? unflaggedAsIndexed(indexed) : unsettled;
  const deliveredAt = flags.find(isTimestamp) ?? context.createdAt;
  return {
    unsettled,
    available: "true",
    scheduledAt: null,
    main,
    conflicts: isDivided ? `(${main}) is not true and ${unsettled}` : null,
    delivered: `not ${unsettled}`,
    deliveredAt: deliveredAt ? t(deliveredAt) : null,
    markDelivered: flags.map(setFlag).join(", "),
    markFailed: notes.length > 0 ? notes.join(", ") : null,
    givenUp: null,
    setBack: null,
    unmark: flags.map(clearFlag).join(", "),
  };
}

/** Whether the index has the flag among its columns or in its condition. The table's own name stands before USING. */
function isIndexed({ name }: ColumnInfo, index: string): boolean {
  const definition = index.slice(index.indexOf(" USING "));
  const words: readonly string[] = definition.match(/"(?:[^"]|"")+"|[\w$]+/g) ?? [];
  return words.includes(name) || words.includes(quoteIdentifier(name));
}

interface StatusContext {
  readonly flags: readonly ColumnInfo[];
  readonly notes: readonly string[];
  readonly attempts: ColumnInfo | null;
  readonly createdAt: ColumnInfo | null;
}

function statusState(status: ColumnInfo, nextAttemptAt: ColumnInfo | null, context: StatusContext): RowState {
  const pending = `${t(status)} = ${STATUS.pending}`;
  const deliveredAt = context.flags.find(isTimestamp) ?? context.createdAt;
  const givenUp = `${set(status)} = case when f.delay_ms is null then ${STATUS.dead} else ${t(status)} end`;
  const postponed = nextAttemptAt ? [postpone(nextAttemptAt)] : [];
  const reset = [
    `${set(status)} = ${STATUS.pending}`,
    ...(nextAttemptAt ? [`${set(nextAttemptAt)} = clock_timestamp()`] : []),
    ...(context.attempts ? [`${set(context.attempts)} = 0`] : []),
  ];
  return {
    unsettled: `coalesce(${pending}, false)`,
    available: nextAttemptAt ? `(${t(nextAttemptAt)} is null or ${t(nextAttemptAt)} <= now())` : "true",
    scheduledAt: nextAttemptAt ? `${t(nextAttemptAt)}::timestamptz` : null,
    main: pending,
    conflicts: null,
    delivered: `coalesce(${t(status)} = ${STATUS.delivered}, false)`,
    deliveredAt: deliveredAt ? t(deliveredAt) : null,
    markDelivered: [`${set(status)} = ${STATUS.delivered}`, ...context.flags.map(setFlag)].join(", "),
    markFailed: [givenUp, ...postponed, ...context.notes].join(", "),
    givenUp: `coalesce(${t(status)} = ${STATUS.dead}, false)`,
    setBack: reset.join(", "),
    unmark: [...reset, ...context.flags.map(clearFlag)].join(", "),
  };
}

function postpone(nextAttemptAt: ColumnInfo): string {
  return `${set(nextAttemptAt)} = clock_timestamp() + case when f.delay_ms is null
    then interval '${DEAD_FOR_DAYS} days' else f.delay_ms * interval '1 millisecond' end`;
}

/** The row stores attempts and the last error where it has columns for them. */
function failureNotes(finder: ColumnFinder, names: ColumnNames, attempts: ColumnInfo | null): readonly string[] {
  const lastError = finder.find({
    role: "the last error",
    named: names.lastError,
    candidates: CANDIDATES.lastError,
    fits: (column) => isText(column) && !column.isEnum,
    type: "text",
  });
  const notes: string[] = [];
  if (attempts) notes.push(`${set(attempts)} = least(f.attempts, 32767)`);
  // The explicit cast cuts a long reason where the column is short; an assignment would fail.
  if (lastError) notes.push(`${set(lastError)} = f.reason::${lastError.type}`);
  return notes;
}

const t = ({ name }: ColumnInfo): string => `t.${quoteIdentifier(name)}`;
const set = ({ name }: ColumnInfo): string => quoteIdentifier(name);
