import type { Grant, Settlement } from "../ports/queue-store.ts";
import { grantCondition } from "./grant-condition.ts";
import { quoteLiteral } from "./identifiers.ts";
import type { RelayTables } from "./relay-tables.ts";

interface Fence {
  readonly grant: Grant;
  readonly previousBatch: bigint;
  readonly batch: bigint;
  readonly ledger: Settlement["ledger"];
  /** In the order of delivery. */
  readonly delivered: readonly string[];
}

/**
 * Moves the lane's progress on and returns one row, or none when the lane changed hands or moved on otherwise. To be
 * used as a CTE of the statement that marks the rows, so that nothing can come between the two.
 */
export function fenceSql({ lanes }: RelayTables, pipeline: string, fence: Fence): string {
  const { grant, previousBatch, batch, delivered, ledger } = fence;
  const last = delivered.at(-1);
  const progress =
    last === undefined
      ? ""
      : `, published_total = published_total + ${delivered.length}, last_event_id = ${quoteLiteral(last)},
         settled_at = clock_timestamp(), crashes = greatest(crashes - 1, 0)`;
  const ledgered = ledger === "none" ? "" : `, ledgered_batch = ${batch}`;
  return `update ${lanes} set settled_batch = ${batch}${ledgered}${progress}
    where ${grantCondition(pipeline, grant)} and settled_batch = ${previousBatch} returning 1`;
}
