import type { Failure } from "../../ports/queue-store.ts";
import { deleteHolds, writeFailures } from "../../postgres/holds.ts";
import type { Row, Session } from "../../postgres/session.ts";
import { noteReapedSql } from "./note-reaped.sql.ts";
import { GIVE_BACK, laneSql, type QueueScope } from "./openoutbox-table.ts";

/** Assignments that take a claim away whose owner died, as far as the condition says so. */
export function reapAssignments({ attemptsMax }: QueueScope, died: string): string {
  return `status = case when ${died} and t.attempts + 1 >= ${attemptsMax} then 'DEAD' else 'PENDING' end,
  attempts = t.attempts + (case when ${died} then 1 else 0 end),
  last_error = case when ${died} then 'The relay that was sending it died: ' || coalesce(t.locked_by, 'unknown')
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
