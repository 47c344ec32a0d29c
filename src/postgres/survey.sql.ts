import { quoteLiteral } from "./identifiers.ts";
import type { RelayTables } from "./relay-tables.ts";

/**
 * Reads in one snapshot: living instances (lane is null), lanes, the pause if there is one (lane is -1), the limit if
 * there is one (lane is -2), and how often operators have changed holds (lane is -3). An expired instance that was not
 * reaped yet does not count.
 */
export const surveySql = (
  { instances, lanes, pipelines }: RelayTables,
  pipeline: string,
  timeline: string | null,
  service: string | null = null,
): string => `
select null::int as lane, id::text as owner, null::bigint as epoch, null::bigint as settled_batch, null as reason
from ${instances} where ${quoteLiteral(pipeline)} = any(pipelines) and alive_until > clock_timestamp()${ofService(service)}
union all
select lane, owner::text, epoch, settled_batch, ${timeline} from ${lanes} where pipeline = ${quoteLiteral(pipeline)}
union all
select -1, coalesce(paused_by, ''), lanes_wanted, null, pause_reason from ${pipelines}
where name = ${quoteLiteral(pipeline)} and paused_at is not null
union all
select -2, null, null, null, limit_per_second::text from ${pipelines}
where name = ${quoteLiteral(pipeline)} and limit_per_second is not null
union all
select -3, null, null, null, holds_change::text from ${pipelines}
where name = ${quoteLiteral(pipeline)} and holds_change > 0
order by lane`;

/** Lanes are shared among the instances of one deployment; instances that report no service belong to every one. */
function ofService(service: string | null): string {
  return service === null ? "" : ` and coalesce(service, ${quoteLiteral(service)}) = ${quoteLiteral(service)}`;
}
