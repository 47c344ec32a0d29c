import { quoteArray, quoteLiteral } from "../../postgres/identifiers.ts";
import { mineCondition, type QueueScope } from "./openoutbox-table.ts";

export interface PendingFilter {
  readonly exceptKeys: readonly string[];
  /** Together with every event of a key that has one of these types waiting. */
  readonly exceptTypes: readonly string[];
}

/**
 * The condition over `t` for the rows that a run shows, but for their lane.
 *
 * NOT IN over a subselect becomes a hashed subplan: it keeps the order of the index, while a join would lose it, and
 * costs the same for one hold as for thousands. Null keys are let through first, since NOT IN knows no answer for them.
 */
export function pendingCondition(scope: QueueScope, { exceptKeys, exceptTypes }: PendingFilter): string {
  const ofPipeline = `from ${scope.tables.holds} h where h.pipeline = ${quoteLiteral(scope.pipeline)}`;
  const conditions = [
    "t.status = 'PENDING' and t.available_at <= now()",
    `t.event_id not in (select h.event_id::uuid ${ofPipeline})`,
    keyNotIn(`select h.event_key ${ofPipeline} and h.parks and h.event_key is not null`),
  ];
  if (scope.types !== null) conditions.push(mineCondition(scope));
  if (exceptKeys.length > 0) conditions.push(keyNotIn(`select unnest(${quoteArray(exceptKeys)}::text[])`));
  if (exceptTypes.length > 0) conditions.push(...exceptTypesConditions(scope, exceptTypes));
  return conditions.join("\n    and ");
}

/**
 * A row of such a type that is being handed back still counts: its followers must not overtake it meanwhile. One
 * subselect per status, because each of the two has a partial index of its own.
 */
function exceptTypesConditions({ table }: QueueScope, types: readonly string[]): string[] {
  const isExcepted = `t.event_type collate "C" in (${types.map(quoteLiteral).join(", ")})`;
  const keysOf = (status: string) => `select t.partition_key collate "C" from ${table.quotedName} t
    where t.status = '${status}' and ${isExcepted} and t.partition_key is not null`;
  return [`not ${isExcepted}`, keyNotIn(`${keysOf("PENDING")} union ${keysOf("DELIVERING")}`)];
}

function keyNotIn(keys: string): string {
  return `(t.partition_key is null or t.partition_key collate "C" not in (${keys}))`;
}
