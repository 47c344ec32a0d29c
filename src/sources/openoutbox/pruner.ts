import { displayTable, quoteLiteral } from "../../postgres/identifiers.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import { statement } from "../../postgres/transaction.ts";
import type { Queue } from "./claim.ts";
import { pruneSql } from "./prune.sql.ts";

/** 8 MB of the table at a time: a few milliseconds. */
const STEP_BLOCKS = 1_024;
const STEPS_MAX = 16;

/**
 * Deletes delivered rows in small steps. The table has no index by which to find them, and reading all of a large one
 * again and again would cost more than the rows do: so it goes through the blocks, and goes on where it stopped.
 */
export class Pruner {
  #block = 0;

  async prune(queue: Queue, olderThanMs: number, rows: number): Promise<number> {
    const { database, scope } = queue;
    const settings = writeSettings(database, "deleting delivered events", displayTable(scope.table.name));
    const size = `pg_relation_size(${quoteLiteral(scope.table.quotedName)}::regclass)`;
    const [found] = await statement(database.pool, settings, `select ${size} / current_setting('block_size')::bigint`);
    const blockCount = Number(found?.[0]);
    let count = 0;
    for (let step = 0; step < Math.min(STEPS_MAX, Math.ceil(blockCount / STEP_BLOCKS) || 1); step++) {
      if (this.#block >= blockCount) this.#block = 0;
      const blocks = { from: this.#block, to: this.#block + STEP_BLOCKS };
      const text = pruneSql(scope, {
        olderThanMs,
        rows: rows - count,
        // A small table at once, and one that is partitioned, whose own size is nothing.
        blocks: blockCount <= STEP_BLOCKS ? null : blocks,
      });
      const [row] = await statement(database.pool, settings, text);
      count += Number(row?.[0]);
      if (count >= rows) return count;
      this.#block += STEP_BLOCKS;
    }
    return count;
  }
}
