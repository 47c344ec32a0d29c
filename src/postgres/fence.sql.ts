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
  /** For a log: the lane's checkpoint as JSON, and a further condition for writing it. */
  readonly log?: { readonly position: string; readonly condition: string };
  /** With durable claims: the claimed events that are being sent, stored in the same column. */
  readonly sending?: readonly string[];
}

/**
 * Raises the lane's progress and returns one row, or none when the lane has another owner or other progress. Use it as
 * a CTE of the statement that marks the rows, so that nothing can happen in between.
 */
export function fenceSql({ lanes }: RelayTables, pipeline: string, fence: Fence): string {
  const { grant, previousBatch, batch, delivered, ledger, log, sending } = fence;
  const last = delivered.at(-1);
  const progress =
    last === undefined
      ? ""
      : `, published_total = published_total + ${delivered.length}, last_event_id = ${quoteLiteral(last)},
         settled_at = clock_timestamp(), crashes = greatest(crashes - 1, 0)`;
  const position = sending === undefined ? log?.position : JSON.stringify({ sending });
  const moved = position === undefined ? "" : `, position = ${quoteLiteral(position)}::jsonb`;
  // Only the last part of a batch raises the ledger's progress.
  const ledgered = ledger === "none" || batch === previousBatch ? "" : `, ledgered_batch = ${batch}`;
  return `update ${lanes} set settled_batch = ${batch}${ledgered}${moved}${progress}
    where ${grantCondition(pipeline, grant)} and settled_batch = ${previousBatch}${log === undefined ? "" : ` and ${log.condition}`} returning 1`;
}
