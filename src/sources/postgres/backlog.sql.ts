import { BACKLOG_EXACT_MAX } from "../../ports/queue-store.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import { typeCondition } from "../../postgres/type-condition.ts";
import { type PendingScope, rowsCondition } from "./pending-condition.ts";

/**
 * One row: how many events wait (at most one more than are counted), the age of the oldest in ms, and the dead letters.
 * Read in order, so that the planner takes the index of the runs and stops early, however few or many rows wait. Dead
 * letters and what is parked behind one are left out: they wait for a person, not for the relay.
 */
export function backlogSql(scope: PendingScope, rows: "main" | "all"): string {
  const { shape, tables, pipeline, types } = scope;
  const dead = `from ${tables.holds} h where h.pipeline = ${quoteLiteral(pipeline)} and h.state = 'dead'`;
  const conditions = [
    rowsCondition(shape, rows),
    ...(types === null ? [] : [typeCondition(shape, types, "mine")]),
    `${shape.id}::text collate "C" not in (select h.event_id ${dead})`,
    `(${shape.key} is null or ${shape.key} collate "C" not in (
      select h.event_key ${dead} and h.parks and h.event_key is not null))`,
  ];
  return `select count(*), extract(epoch from clock_timestamp() - min(w.created_at)) * 1000, (select count(*) ${dead})
from (select ${shape.createdAt} as created_at from ${shape.quotedName} t
  where ${conditions.join("\n    and ")}
  order by ${shape.order.column} limit ${BACKLOG_EXACT_MAX + 1}) w`;
}
