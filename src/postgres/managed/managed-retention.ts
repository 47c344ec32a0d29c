import { isRelayError } from "../../core/errors.ts";
import { displayTable, quoteTable, type TableName } from "../identifiers.ts";
import type { Database } from "../pool.ts";
import type { Session } from "../session.ts";
import { transaction } from "../transaction.ts";
import { pruneDefault } from "./default-retention.ts";
import { areNeedsOutdated, BY_INDEX, type Needs, needsOf, type Unread } from "./log-needs.ts";
import type { ManagedFinding } from "./managed-names.ts";
import { isoOf } from "./managed-partitions.ts";
import { type Partition, type PartitionRange, requireManaged } from "./managed-table.ts";

interface ManagedRetention {
  readonly olderThanMs: number;
  /** How long beyond that a lagging subscriber can keep a partition; null: forever. */
  readonly lagMaxMs: number | null;
}

interface Pruned {
  /** Partitions. */
  readonly dropped: number;
  /** Rows of DEFAULT. */
  readonly deleted: number;
  readonly findings: readonly ManagedFinding[];
}

/**
 * The longest wait for a lock: a new writer waits no longer than this behind pruning, and pruning no longer behind a
 * writer.
 */
const LOCK_MS = 50;
const STATEMENT_MS = 2_000;
const ROWS_COUNTED_MAX = 100_000;

/** A partition with a time range. */
type Dated = Partition & { readonly range: PartitionRange };

/**
 * Drops the partitions that are completely past the retention and that no subscriber needs. A partition that a writer
 * uses right now is left for the next time: under the lock there are no writers, so no row can appear after the check.
 */
export async function pruneManaged(
  database: Database,
  table: TableName,
  { olderThanMs, lagMaxMs }: ManagedRetention,
): Promise<Pruned> {
  const { nowMs, partitions } = await requireManaged(database, table);
  const oldMs = nowMs - olderThanMs;
  const forcedMs = lagMaxMs === null ? Number.NEGATIVE_INFINITY : oldMs - lagMaxMs;
  const old = partitions.filter(
    (partition): partition is Dated => partition.range !== null && partition.range.toMs <= oldMs,
  );
  const findings: ManagedFinding[] = [];
  let dropped = 0;
  for (const partition of old) {
    const isForced = partition.range.toMs <= forcedMs;
    const needs = await needsOf(database, table, partition.name, isForced ? ROWS_COUNTED_MAX : 1);
    if (needs.unread.length > 0 && !isForced) {
      findings.push(heldBack(table, partition, needs.unread));
      break;
    }
    if (!(await drop(database, table, partition, needs))) break;
    dropped += 1;
    for (const unread of needs.unread) findings.push(droppedUnread(table, partition, unread));
  }
  const rest = await pruneDefault(database, table, partitions, { oldMs, forcedMs });
  return { dropped, deleted: rest.deleted, findings: [...findings, ...rest.findings] };
}

/** False when it must wait: a writer uses the table, or something changed since the check. */
async function drop(database: Database, table: TableName, partition: Dated, needs: Needs): Promise<boolean> {
  const settings = {
    context: database.errorContext("dropping a partition", displayTable(partition.name)),
    statementTimeoutMs: STATEMENT_MS,
    lockTimeoutMs: LOCK_MS,
    settings: BY_INDEX,
  };
  try {
    return await transaction(database.pool, settings, async (session) => {
      await session.rows(await lockSql(session, table, partition.name));
      const [attached] = await session.rows(
        "select from pg_catalog.pg_inherits where inhparent = $1::regclass and inhrelid = $2::regclass",
        [quoteTable(table), quoteTable(partition.name)],
      );
      if (attached === undefined) return false;
      if (await areNeedsOutdated(session, database, { table, partition: partition.name, needs })) return false;
      for (const unread of needs.unread) await record(session, database, { table, partition, unread });
      await session.rows(`drop table ${quoteTable(partition.name)}`);
      return true;
    });
  } catch (error) {
    // Another relay may have been faster.
    if (isRelayError(error, "DATABASE_BUSY") || isRelayError(error, "TABLE_MISSING")) return false;
    throw error;
  }
}

/** Locks the parent first, as every reader and writer does, and DEFAULT, which the server locks as well. */
async function lockSql(session: Session, table: TableName, partition: TableName): Promise<string> {
  const [row] = await session.rows(
    `select partdefid::regclass::text from pg_catalog.pg_partitioned_table
     where partrelid = $1::regclass and partdefid <> 0`,
    [quoteTable(table)],
  );
  const tables = [quoteTable(table), quoteTable(partition), ...(row?.[0] == null ? [] : [row[0]])];
  return `lock table ${tables.map((name) => `only ${name}`).join(", ")} in access exclusive mode`;
}

/** Records dropped unread events in the same transaction, so that events never disappear silently. */
async function record(
  session: Session,
  { tables }: Database,
  { table, partition, unread }: { readonly table: TableName; readonly partition: Dated; readonly unread: Unread },
): Promise<void> {
  const detail = {
    source: displayTable(table),
    partition: displayTable(partition.name),
    from: isoOf(partition.range.fromMs),
    to: isoOf(partition.range.toMs),
    lanes: unread.lanes,
    rows: unread.rows,
    reason: "rows were dropped unread",
  };
  await session.rows(
    `insert into ${tables.technicalEvents} (at, name, pipeline, detail)
     values (clock_timestamp(), 'EventsDroppedUnread', $1, $2::jsonb)`,
    [unread.pipeline, JSON.stringify(detail)],
  );
}

function heldBack(table: TableName, { name, range }: Dated, unread: readonly Unread[]): ManagedFinding {
  const who = unread
    .map(({ pipeline, settledAt }) => `${pipeline} (last progress: ${settledAt ?? "never"})`)
    .join(", ");
  return {
    severity: "warning",
    what: `${displayTable(name)} of ${displayTable(table)}, which ended at ${isoOf(range.toMs)}, is past its retention but kept: unread by ${who}`,
    fix: "Let the subscriber catch up, remove it, or limit how long a lagging subscriber keeps rows.",
  };
}

function droppedUnread(table: TableName, { name, range }: Dated, { pipeline, rows, lanes }: Unread): ManagedFinding {
  const many = `${rows === ROWS_COUNTED_MAX ? "at least " : ""}${rows}`;
  const when = `${isoOf(range.fromMs)} to ${isoOf(range.toMs)}`;
  return {
    severity: "error",
    what: `rows were dropped unread: ${many} events of ${displayTable(table)} for ${pipeline}, written ${when} (${displayTable(name)}, lanes ${lanes.join(", ")})`,
    fix: "The subscriber lagged behind by more than the limit. Send it these events by other means, or raise the limit.",
  };
}
