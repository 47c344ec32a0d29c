import { quoteArray, quoteLiteral } from "../../../postgres/identifiers.ts";
import { oursCondition, type QueueScope } from "./openoutbox-table.ts";

/** The held ids that are void: the row is gone, or another relay delivered it, claimed it or made it dead. */
export function findGoneSql(scope: QueueScope, owner: string, ids: readonly string[]): string {
  const { shape, tables, pipeline } = scope;
  return `select a.id from unnest(${quoteArray(ids)}::text[]) as a (id)
left join ${shape.quotedName} t on t.event_id = a.id::uuid
left join ${tables.holds} h on h.pipeline = ${quoteLiteral(pipeline)} and h.event_id = a.id
where t.event_id is null or not (t.status = 'PENDING'
  or (t.status = 'DEAD' and h.state is not distinct from 'dead') or coalesce(${oursCondition(owner)}, false))`;
}
