import { RelayError } from "../../core/errors.ts";
import { BACKLOG_EXACT_MAX, type Backlog, type SourceBacklog } from "../../ports/queue-store.ts";
import { displayTable } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import { type CountedTable, tableBacklog } from "../../postgres/table-backlog.ts";
import { tableTakers } from "../../postgres/table-takers.ts";
import { glance } from "../../postgres/transaction.ts";
import { type PendingFilter, type PendingScope, rowsCondition } from "./pending-condition.ts";
import { orderColumns, type TableShape } from "./table-shape.ts";

/** How the pending rows of this table are counted. */
export function countedTable(
  shape: TableShape,
  { failedEvents, holds }: RelayTables,
  rows: PendingFilter["rows"],
): CountedTable {
  return {
    table: shape,
    waiting: [
      { where: rowsCondition(shape, rows), order: orderColumns(shape) },
      // Each condition has its own partial index.
      ...(shape.claims === undefined ? [] : [{ where: shape.claims.claimed, order: [] }]),
    ],
    dueAt: dueAt(shape),
    marksDead: shape.claims !== undefined,
    dead: (pipelines) =>
      shape.claims === undefined
        ? `select pipeline, count(*) from ${holds} where state = 'dead' and pipeline in (${pipelines}) group by 1`
        : deadRowsSql(shape, failedEvents, pipelines),
  };
}

/** Dead letters that are not resolved and whose rows are still dead. */
function deadRowsSql({ givenUp, id, idType, quotedName }: TableShape, failedEvents: string, pipelines: string): string {
  return `select x.pipeline, count(*) from (
  select d.pipeline from ${failedEvents} d join ${quotedName} t on ${id} = d.original_event_id::${idType}
  where d.pipeline in (${pipelines}) and d.resolved_at is null and ${givenUp}
  limit ${BACKLOG_EXACT_MAX + 1}) x group by 1`;
}

/**
 * A scheduled event is due at its time. A failed event has been due since it was written: its lag must include its
 * retries.
 */
function dueAt({ attempts, createdAt, scheduledAt }: TableShape): string {
  if (scheduledAt === null) return createdAt;
  const isScheduled = attempts === "null" ? `${scheduledAt} > now()` : `coalesce(${attempts}, 0) = 0`;
  return `greatest(${createdAt}, case when ${isScheduled} then ${scheduledAt} end)`;
}

/** Counts what one pipeline has pending, by its own types, whatever the other pipelines read from the table. */
export async function backlogOf(
  database: Database,
  { pipeline, shape, types }: Pick<PendingScope, "pipeline" | "shape" | "types">,
  rows: PendingFilter["rows"],
): Promise<Backlog> {
  const context = database.errorContext("counting pending events", displayTable(shape.name));
  const takers = { takers: [{ pipeline, takes: types }], retired: [], unknown: [] };
  const { pipelines } = await tableBacklog(database, context, countedTable(shape, database.tables, rows), takers);
  return pipelines.get(pipeline)!;
}

interface CounterParts {
  readonly database: Database;
  readonly readShape: () => Promise<TableShape>;
}

// The check may have to scan the table: give up early, the next one follows soon.
const CONFLICT_CHECK_MS = 2_000;

/** Counts the pending rows of a table for each of its pipelines, by the routes that the relay's schema stores. */
export class TableCounter {
  readonly #parts: CounterParts;
  #known: { readonly shape: TableShape; readonly conflicts: ConflictWatch | null } | null = null;

  constructor(parts: CounterParts) {
    this.#parts = parts;
  }

  async count(): Promise<SourceBacklog> {
    try {
      return await this.#count();
    } catch (error) {
      // The table may have changed since, so read its shape again next time.
      if (error instanceof RelayError && error.code !== "DATABASE_BUSY") this.#known = null;
      throw error;
    }
  }

  async #count(): Promise<SourceBacklog> {
    const { database } = this.#parts;
    this.#known ??= await this.#look();
    const { shape, conflicts } = this.#known;
    const rows = (await conflicts?.found()) ? "all" : "main";
    const context = database.errorContext("counting pending events", displayTable(shape.name));
    const takers = await tableTakers(database, shape.name);
    return await tableBacklog(database, context, countedTable(shape, database.tables, rows), takers);
  }

  async #look() {
    const { database, readShape } = this.#parts;
    const shape = await readShape();
    const context = database.errorContext("searching for events", displayTable(shape.name));
    const text = `select from ${shape.quotedName} t where ${shape.conflicts} limit 1`;
    const look = async () => (await glance(database.pool, context, CONFLICT_CHECK_MS, text)).length > 0;
    return { shape, conflicts: shape.conflicts === null ? null : new ConflictWatch(look) };
  }
}

/** Finds rows whose flags contradict each other; see `RowState.conflicts`. */
export class ConflictWatch {
  readonly #look: () => Promise<boolean>;
  #first: Promise<void> | null = null;
  #isLooking = false;
  #dueMs = 0;
  #found = false;

  /** `look` queries the database; it may be slow without an index. */
  constructor(look: () => Promise<boolean>) {
    this.#look = look;
  }

  /**
   * Whether runs must read by all flags for now. Only the first check is awaited. Later checks run beside the delivery,
   * and so rarely that they take at most a hundredth of the time, however large the table is. A check that fails (too
   * slow) counts as having found nothing.
   */
  async found(): Promise<boolean> {
    if (this.#first === null) this.#first = this.#lookAgain();
    else if (!this.#isLooking && performance.now() >= this.#dueMs) void this.#lookAgain();
    await this.#first;
    return this.#found;
  }

  async #lookAgain(): Promise<void> {
    this.#isLooking = true;
    const startMs = performance.now();
    this.#found = await this.#look().catch(() => false);
    const endMs = performance.now();
    this.#dueMs = endMs + Math.max(LOOK_EVERY_MS, (endMs - startMs) * 100);
    this.#isLooking = false;
  }
}

const LOOK_EVERY_MS = 10_000;
