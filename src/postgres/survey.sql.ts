import { quoteLiteral } from "./identifiers.ts";
import type { RelayTables } from "./relay-tables.ts";

/** Living instances (lane is null) and lanes, in one snapshot. An expired instance that nobody reaped yet is no longer one. */
export const surveySql = ({ instances, lanes }: RelayTables, pipeline: string): string => `
select null::int as lane, id as owner, null::bigint as epoch, null::bigint as settled_batch from ${instances}
where ${quoteLiteral(pipeline)} = any(pipelines) and alive_until > clock_timestamp()
union all
(select lane, owner, epoch, settled_batch from ${lanes} where pipeline = ${quoteLiteral(pipeline)})
order by lane`;
