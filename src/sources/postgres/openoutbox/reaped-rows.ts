import type { Failure } from "../../../ports/queue-store.ts";
import { deleteHolds, writeFailures } from "../../../postgres/holds.ts";
import type { RelayTables } from "../../../postgres/relay-tables.ts";
import type { Row, Session } from "../../../postgres/session.ts";
import { GIVE_BACK, LOCK_NAME } from "./claim-order.ts";
import { laneSql, type QueueScope } from "./openoutbox-table.ts";

interface ReapRule {
  /**
   * Whether the lost claim counts as a failure; `attempts` is then the new count, and `isLast` whether that was the
   * last attempt.
   */
  readonly isLost: string;
  readonly attempts: string;
  readonly isLast: string;
}

/** Assignments that end the claim of an owner that died. */
export function reapAssignments({ isLost, attempts, isLast }: ReapRule): string {
  return `status = case when ${isLast} then 'DEAD' else 'PENDING' end,
  attempts = case when ${isLost} then ${attempts} else t.attempts end,
  last_error = case when ${isLost} then 'The relay that was sending it died: ' || coalesce(${LOCK_NAME}, 'unknown')
    else t.last_error end,
  ${GIVE_BACK}`;
}

/** The columns that a statement with these assignments returns, for `noteReaped`. */
export function reapedColumns(scope: QueueScope): string {
  return `t.event_id, t.partition_key, ${laneSql(scope)}, t.attempts, t.last_error, t.status`;
}

/**
 * Adds count and reason to the holds of reaped rows. Rows at their last attempt become dead letters; the row knows no
 * parking policy, so its death parks no key. Returns how many died.
 */
export async function noteReaped(session: Session, scope: QueueScope, rows: readonly Row[]): Promise<number> {
  const { tables, pipeline, shape } = scope;
  const alive = rows.filter((row) => row[5] !== "DEAD");
  if (alive.length > 0) {
    const columns = [alive.map((row) => row[0]), alive.map((row) => Number(row[3])), alive.map((row) => row[4])];
    await session.rows(noteReapedSql(tables), [pipeline, ...columns]);
  }
  const dead = rows.filter((row) => row[5] === "DEAD");
  for (const [lane, ofLane] of Map.groupBy(dead, (row) => Number(row[2]))) {
    const holdScope = { tables, pipeline, lane };
    await writeFailures(session, holdScope, shape, ofLane.map(lastFailure));
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

/** Adds the failure to the holds of reaped events. Takes `$1` pipeline, `$2` ids, `$3` attempts, `$4` reasons. */
const noteReapedSql = ({ holds }: RelayTables): string => `
update ${holds} h set attempts = r.attempts, reason = r.reason, last_failed_at = clock_timestamp(),
  errors = h.errors || jsonb_build_array(
    jsonb_build_object('at', clock_timestamp(), 'attempt', r.attempts, 'reason', r.reason))
from unnest($2::text[], $3::int[], $4::text[]) as r (id, attempts, reason)
where h.pipeline = $1 and h.event_id = r.id and h.event_id = any($2::text[])`;
