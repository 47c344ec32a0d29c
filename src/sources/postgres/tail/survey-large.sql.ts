import { type Difference, endedSince, parseSnapshot } from "./difference.ts";
import { type TailScope, tableSql, xidArray, xidLiteral } from "./tail-scope.ts";

/**
 * Where the parts of a large difference begin: in the row without a transaction, the part that began after the older
 * snapshot, then each transaction that ran in it. The addition keeps the planner from searching the minimum along the
 * positions.
 */
export function surveyLargeSql(scope: TailScope, difference: Difference & { readonly to: string }): string {
  const { position, xid } = scope.shape;
  const range = `${xid} >= ${xidLiteral(parseSnapshot(difference.from).end)}
  and ${xid} < ${xidLiteral(parseSnapshot(difference.to).end)}`;
  const first = `select ${position} from ${tableSql(scope)} where ${xid} = x order by ${xid}, ${position} limit 1`;
  return `select null, min(${position} + 0) from ${tableSql(scope)} where ${range}
union all select x::text, (${first}) from unnest(${xidArray(endedSince(difference))}) x`;
}
