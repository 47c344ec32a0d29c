import { isRelayError, type RelayError } from "../../core/errors.ts";
import { displayTable, quoteTable, type TableName } from "../identifiers.ts";
import type { Database } from "../pool.ts";
import { statement, transaction } from "../transaction.ts";
import type { ManagedFinding } from "./managed-names.ts";
import { createPartitionsSql } from "./managed-partitions.sql.ts";
import { type ManagedFacts, type PartitionRange, requireManaged } from "./managed-table.ts";

/** How long to wait for users of DEFAULT; writers of other partitions are not affected. */
const LOCK_MS = 100;
const TRIES = 3;
const ROWS_COUNTED_MAX = 10_000;

interface PartitionUpkeep {
  readonly created: number;
  readonly findings: readonly ManagedFinding[];
}

/**
 * Creates the partitions from now to `aheadMs` from now. A range that could not be created is a finding: its rows go to
 * DEFAULT, are read there like all others, and are deleted from there once they are old.
 */
export async function keepPartitions(database: Database, table: TableName, aheadMs: number): Promise<PartitionUpkeep> {
  const before = await requireManaged(database, table);
  if (gapsOf(before, aheadMs).length === 0)
    return { created: 0, findings: await partitionFindings(database, before, aheadMs) };
  await create(database, before, aheadMs);
  const facts = await requireManaged(database, table);
  const created = facts.partitions.length - before.partitions.length;
  return { created: Math.max(0, created), findings: await partitionFindings(database, facts, aheadMs) };
}

async function create(database: Database, { table, step }: ManagedFacts, aheadMs: number): Promise<void> {
  const settings = creationSettings(database, table);
  for (let left = TRIES; left > 0; left -= 1) {
    try {
      await statement(database.pool, settings, createPartitionsSql(table, step, aheadMs).replace(/;$/, ""));
      return;
    } catch (error) {
      if (!isRelayError(error, "DATABASE_BUSY")) throw error;
    }
  }
}

/**
 * Tests upkeep: creates one partition after the existing ones and rolls back. Returns null when that works, or when the
 * table is too busy to find out; otherwise the error. Writers are not affected, except that DEFAULT is locked for a
 * moment.
 */
export async function upkeepFault(database: Database, facts: ManagedFacts): Promise<RelayError | null> {
  const { nowMs, partitions, step, table } = facts;
  const endMs = Math.max(nowMs, ...partitions.map(({ range }) => range?.toMs ?? nowMs));
  if (!Number.isFinite(endMs)) return null;
  try {
    await transaction(database.pool, creationSettings(database, table), async (session) => {
      await session.script("savepoint trial");
      await session.script(createPartitionsSql(table, step, endMs - nowMs));
      await session.script("rollback to savepoint trial");
    });
    return null;
  } catch (error) {
    if (!isRelayError(error)) throw error;
    if (error.code === "DATABASE_UNREACHABLE") throw error;
    return error.code === "DATABASE_BUSY" ? null : error;
  }
}

function creationSettings(database: Database, table: TableName) {
  return {
    context: database.errorContext("creating partitions", displayTable(table)),
    statementTimeoutMs: database.timeouts.readMs,
    lockTimeoutMs: LOCK_MS,
  };
}

/** The ranges from now on that have no partition. Pure. */
export function gapsOf({ nowMs, partitions }: ManagedFacts, aheadMs: number): readonly PartitionRange[] {
  const gaps: PartitionRange[] = [];
  const untilMs = nowMs + aheadMs;
  let atMs = nowMs;
  for (const { range } of partitions) {
    if (range === null || range.toMs <= atMs) continue;
    if (range.fromMs > untilMs) break;
    if (range.fromMs > atMs) gaps.push({ fromMs: atMs, toMs: range.fromMs });
    atMs = range.toMs;
  }
  if (atMs <= untilMs) gaps.push({ fromMs: atMs, toMs: untilMs });
  return gaps;
}

/** Reports missing partitions and rows in DEFAULT. Changes nothing. */
export async function partitionFindings(
  database: Database,
  facts: ManagedFacts,
  aheadMs: number,
): Promise<readonly ManagedFinding[]> {
  const name = displayTable(facts.table);
  const missing = gapsOf(facts, aheadMs).map(({ fromMs, toMs }): ManagedFinding => {
    const what = `${name} has no partition for ${isoOf(fromMs)} to ${isoOf(toMs)}: its rows go to DEFAULT. Nothing is lost, but retention is slower there`;
    const fix = `A relay that runs as the owner of ${name} creates it automatically, unless DEFAULT has rows of that range or the table is locked.`;
    return { severity: "warning", what, fix };
  });
  return [...missing, ...(await defaultFindings(database, facts))];
}

async function defaultFindings(database: Database, { table, partitions }: ManagedFacts): Promise<ManagedFinding[]> {
  const name = displayTable(table);
  const last = partitions.find(({ range }) => range === null);
  if (last === undefined) {
    const fix = `create table ${quoteTable({ schema: table.schema, table: `${table.table}_default` })} partition of ${quoteTable(table)} default;`;
    const what = `${name} has no DEFAULT partition: an event outside the partitions fails the writer's transaction`;
    return [{ severity: "error", what, fix }];
  }
  const settings = {
    context: database.errorContext("reading DEFAULT", name),
    statementTimeoutMs: database.timeouts.readMs,
    lockTimeoutMs: database.timeouts.lockMs,
    readOnly: true,
  };
  const [row] = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select count(*), min(created_at)::text, max(created_at)::text
       from (select created_at from ${quoteTable(last.name)} limit ${ROWS_COUNTED_MAX}) d`,
    ),
  );
  const count = Number(row?.[0]);
  if (count === 0) return [];
  const many = `${count === ROWS_COUNTED_MAX ? "at least " : ""}${count}`;
  const what = `${many} events of ${name} are in DEFAULT, written from ${row?.[1]} to ${row?.[2]}: there was no partition for them`;
  const fix =
    "Nothing to do now: they are delivered and deleted after the retention like all others. Keep a relay running, so that partitions are created in time.";
  return [{ severity: "warning", what, fix }];
}

/** For messages. */
export function isoOf(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString().replace(".000Z", "Z") : String(ms);
}
