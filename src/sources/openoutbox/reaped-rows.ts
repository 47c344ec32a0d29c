import type { Failure } from "../../ports/queue-store.ts";
import { deleteHolds, writeFailures } from "../../postgres/holds.ts";
import type { Row, Session } from "../../postgres/session.ts";
import { GIVE_BACK, LOCK_NAME } from "./claim-order.ts";
import { noteReapedSql } from "./note-reaped.sql.ts";
import { laneSql, type QueueScope } from "./openoutbox-table.ts";

interface ReapRule {
  /** Whether the loss of the claim counts as a failure; then there are so many attempts, and perhaps that was the last. */
  readonly isLost: string;
  readonly attempts: string;
  readonly isLast: string;
}

/** Assignments that take a claim away whose owner died. */
export function reapAssignments({ isLost, attempts, isLast }: ReapRule): string {
  return `status = case when ${isLast} then 'DEAD' else 'PENDING' end,
  attempts = case when ${isLost} then ${attempts} else t.attempts end,
  last_error = case when ${isLost} then 'The relay that was sending it died: ' || coalesce(${LOCK_NAME}, 'unknown')
    else t.last_error end,
  ${GIVE_BACK}`;
}

/** What a statement with these assignments returns, for `noteReaped`. */
export function reapedColumns(scope: QueueScope): string {
  return `t.event_id, t.partition_key, ${laneSql(scope)}, t.attempts, t.last_error, t.status`;
}

/**
 * The count and the reason go into the holds that such rows have. Those for which it was the last attempt become dead
 * letters; the row knows no policy, so its death parks nobody. Returns how many are dead.
 */
export async function noteReaped(session: Session, scope: QueueScope, rows: readonly Row[]): Promise<number> {
  const { tables, pipeline, table } = scope;
  const alive = rows.filter((row) => row[5] !== "DEAD");
  if (alive.length > 0) {
    const columns = [alive.map((row) => row[0]), alive.map((row) => Number(row[3])), alive.map((row) => row[4])];
    await session.rows(noteReapedSql(tables), [pipeline, ...columns]);
  }
  const dead = rows.filter((row) => row[5] === "DEAD");
  for (const [lane, ofLane] of Map.groupBy(dead, (row) => Number(row[2]))) {
    const holdScope = { tables, pipeline, lane };
    await writeFailures(session, holdScope, table, ofLane.map(lastFailure));
    await deleteHolds(
      session,
      holdScope,
      ofLane.map((row) => row[0] ?? ""),
    );
  }
  return dead.length;
}

function lastFailure([id, key, , attempts, reason]: Row): Failure {
  const next = { kind: "dead", parks: false } as const;
  return { id: id ?? "", key: key ?? null, reason: reason ?? "", attempts: Number(attempts), next };
}
