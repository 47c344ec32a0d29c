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
  /** How far a lane of a log has come, as JSON, and what must hold besides for this to be true. */
  readonly log?: { readonly position: string; readonly condition: string };
  /** Where claims are durable, in the same place: which of them are sent. */
  readonly sending?: readonly string[];
}

/**
 * Moves the lane's progress on and returns one row, or none when the lane changed hands or moved on otherwise. To be
 * used as a CTE of the statement that marks the rows, so that nothing can come between the two.
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
  // A part of a batch moves nothing on: only its last part does.
  const ledgered = ledger === "none" || batch === previousBatch ? "" : `, ledgered_batch = ${batch}`;
  return `update ${lanes} set settled_batch = ${batch}${ledgered}${moved}${progress}
    where ${grantCondition(pipeline, grant)} and settled_batch = ${previousBatch}${log === undefined ? "" : ` and ${log.condition}`} returning 1`;
}
