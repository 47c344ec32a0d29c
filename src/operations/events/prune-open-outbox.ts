import { RelayError } from "../../core/errors.ts";
import { displayTable, quoteArray, quoteLiteral, type TableName } from "../../postgres/identifiers.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import { statement } from "../../postgres/transaction.ts";
import { isOpenOutbox, openOutboxShape } from "../../sources/postgres/openoutbox/openoutbox-table.ts";
import type { Author } from "../audit/author.ts";
import { discardDeadLetters } from "../dead-letters/dead-letter-discard.ts";
import type { OperationTarget } from "./event-source.ts";

interface PruneRequest {
  readonly table: TableName;
  /** Null: keep all delivered rows. */
  readonly deliveredMs: number | null;
  /** Null: keep all dead rows. */
  readonly deadMs: number | null;
  readonly isDryRun: boolean;
  readonly author: Author;
}

/** The number of deleted rows; of a dry run, of those that would be deleted. */
export interface PruneResult {
  readonly table: string;
  readonly delivered: number;
  readonly dead: number;
}

/** A statement of a person, who waits for it, on a table without an index for these rows. */
const PRUNE_MS = 60_000;
/** 8 MB of the table per statement, so that none holds many locks or a long transaction. */
const STEP_BLOCKS = 1_024;
const DEAD_ROWS = 1_000;

/**
 * Deletes old rows of an Open Outbox table: delivered ones by their delivery, dead ones by their last change. A dead
 * event's letter is discarded first, so that the later events of its key continue.
 */
export async function pruneOpenOutbox(target: OperationTarget, request: PruneRequest): Promise<PruneResult> {
  const { database } = target;
  const { deadMs, deliveredMs, isDryRun, table } = request;
  await requireOpenOutbox(database, table);
  const name = displayTable(table);
  if (isDryRun) return { table: name, ...(await countOld(database, request)) };
  const delivered = deliveredMs === null ? 0 : await deleteDelivered(database, table, deliveredMs);
  const dead = deadMs === null ? 0 : await deleteDead(target, request, deadMs);
  return { table: name, delivered, dead };
}

const older = (column: string, ageMs: number) => `${column} < now() - ${Math.round(ageMs)} * interval '1 millisecond'`;
const deliveredBefore = (ageMs: number | null) =>
  ageMs === null ? "false" : `t.status = 'DELIVERED' and ${older("t.delivered_at", ageMs)}`;
const deadBefore = (ageMs: number | null) =>
  ageMs === null ? "false" : `t.status = 'DEAD' and ${older("t.updated_at", ageMs)}`;

const pruneSettings = (database: Database, table: TableName) => ({
  ...writeSettings(database, "pruning", displayTable(table)),
  statementTimeoutMs: PRUNE_MS,
});

async function requireOpenOutbox(database: Database, table: TableName): Promise<void> {
  const rows = await statement(
    database.pool,
    pruneSettings(database, table),
    `select a.attname from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
       join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where n.nspname = ${quoteLiteral(table.schema)} and c.relname = ${quoteLiteral(table.table)}
       and a.attnum > 0 and not a.attisdropped`,
  );
  if (isOpenOutbox(rows.map(([column]) => column ?? ""))) return;
  const what = `${displayTable(table)} is not an Open Outbox table`;
  throw new RelayError("CONFIG_INVALID", `${what}: RETENTION deletes the delivered rows of other tables`);
}

async function countOld(database: Database, { deadMs, deliveredMs, table }: PruneRequest) {
  const [row] = await statement(
    database.pool,
    pruneSettings(database, table),
    `select count(*) filter (where ${deliveredBefore(deliveredMs)}), count(*) filter (where ${deadBefore(deadMs)})
     from ${openOutboxShape(table).quotedName} t`,
  );
  return { delivered: Number(row?.[0]), dead: Number(row?.[1]) };
}

/** Walks through the table once, block by block. A partitioned table has no blocks of its own and is one step. */
async function deleteDelivered(database: Database, table: TableName, ageMs: number): Promise<number> {
  const { quotedName } = openOutboxShape(table);
  const settings = pruneSettings(database, table);
  const size = `pg_relation_size(${quoteLiteral(quotedName)}::regclass) / current_setting('block_size')::bigint`;
  const [found] = await statement(database.pool, settings, `select ${size}`);
  const blockCount = Number(found?.[0]);
  let count = 0;
  for (let block = 0; block <= blockCount; block += STEP_BLOCKS) {
    const within = `t.ctid >= '(${block},0)'::tid and t.ctid < '(${block + STEP_BLOCKS},0)'::tid`;
    const [row] = await statement(
      database.pool,
      settings,
      `with pruned as (delete from ${quotedName} t where ${deliveredBefore(ageMs)} and ${within} returning 1)
       select count(*) from pruned`,
    );
    count += Number(row?.[0]);
  }
  return count;
}

async function deleteDead(target: OperationTarget, request: PruneRequest, ageMs: number): Promise<number> {
  const { author, table } = request;
  const { database } = target;
  const { quotedName } = openOutboxShape(table);
  const settings = pruneSettings(database, table);
  let count = 0;
  for (;;) {
    const found = await statement(
      database.pool,
      settings,
      `select t.event_id from ${quotedName} t where ${deadBefore(ageMs)} limit ${DEAD_ROWS}`,
    );
    const ids = found.map(([id]) => id ?? "");
    if (ids.length === 0) return count;
    const reason = author.reason ?? "pruned";
    await discardDeadLetters(target, {
      choice: { ids, source: displayTable(table) },
      author: { ...author, reason },
    });
    const [row] = await statement(
      database.pool,
      settings,
      `with pruned as (delete from ${quotedName} t
         where t.event_id = any(${quoteArray(ids)}::uuid[]) and ${deadBefore(ageMs)} returning 1)
       select count(*) from pruned`,
    );
    count += Number(row?.[0]);
    // The rest was set back meanwhile, or is being replayed.
    if (Number(row?.[0]) < ids.length) return count;
  }
}
