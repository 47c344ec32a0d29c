import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import type { Difference } from "./difference.ts";
import { snapshotLiteral } from "./tail-scope.ts";

/** Whether the server has reached the position's snapshot, its current transaction, and its incarnation. */
export function checkPositionSql({ from, to }: Difference): string {
  const now = "pg_snapshot_xmax(pg_current_snapshot())";
  return `select pg_snapshot_xmax(${snapshotLiteral(to ?? from)}) <= ${now}, ${now}::text, ${SERVER_INCARNATION}`;
}
