import type { Grant } from "../ports/queue-store.ts";
import { grantCondition } from "./grant-condition.ts";
import { quoteArray, quoteLiteral } from "./identifiers.ts";
import type { RelayTables } from "./relay-tables.ts";

/**
 * Releases a lane, or changes nothing when the grant is outdated. The events noted as about to be sent crashed no
 * process: the next owner finds them as normal retries.
 */
export function releaseLaneSql(
  { holds, lanes }: RelayTables,
  pipeline: string,
  grant: Grant,
  suspects: readonly string[],
): string {
  return `with released as (update ${lanes} set owner = null where ${grantCondition(pipeline, grant)} returning lane)
update ${holds} h set state = 'retrying', crashes = h.crashes - 1 from released r
where h.pipeline = ${quoteLiteral(pipeline)} and h.lane = r.lane and h.state = 'suspect'
  and h.event_id = any(${quoteArray(suspects)}::text[])`;
}
