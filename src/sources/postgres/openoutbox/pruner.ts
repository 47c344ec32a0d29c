import { displayTable, quoteLiteral } from "../../../postgres/identifiers.ts";
import { writeSettings } from "../../../postgres/lanes.ts";
import { statement } from "../../../postgres/transaction.ts";
import { pruneSql } from "../prune.sql.ts";
import type { Queue } from "./claim.ts";
import { mineCondition } from "./openoutbox-table.ts";

/** 8 MB of the table per step: a few milliseconds. */
const STEP_BLOCKS = 1_024;
const STEPS_MAX = 16;

/**
 * Deletes delivered rows in small steps. The table has no index that finds them, and scanning a large table again and
 * again would cost more than the rows do. So the pruner walks through the blocks and remembers where it stopped.
 */
export class Pruner {
  #block = 0;

  async prune(queue: Queue, olderThanMs: number, rows: number): Promise<number> {
    const { database, scope } = queue;
    const settings = writeSettings(database, "deleting delivered events", displayTable(scope.shape.name));
    const size = `pg_relation_size(${quoteLiteral(scope.shape.quotedName)}::regclass)`;
    const [found] = await statement(database.pool, settings, `select ${size} / current_setting('block_size')::bigint`);
    const blockCount = Number(found?.[0]);
    let count = 0;
    for (let step = 0; step < Math.min(STEPS_MAX, Math.ceil(blockCount / STEP_BLOCKS) || 1); step++) {
      if (this.#block >= blockCount) this.#block = 0;
      const blocks = `t.ctid >= '(${this.#block},0)'::tid and t.ctid < '(${this.#block + STEP_BLOCKS},0)'::tid`;
      // A small table is done in one step. So is a partitioned one, whose own size is zero.
      const within = blockCount <= STEP_BLOCKS ? mineCondition(scope) : `${mineCondition(scope)} and ${blocks}`;
      const wanted = { deliveredAt: "t.delivered_at", olderThanMs, rows: rows - count, within };
      const [row] = await statement(database.pool, settings, pruneSql(scope.shape, wanted));
      count += Number(row?.[0]);
      if (count >= rows) return count;
      this.#block += STEP_BLOCKS;
    }
    return count;
  }
}
