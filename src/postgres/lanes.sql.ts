import type { Grant } from "../ports/queue-store.ts";
import { grantCondition } from "./grant-condition.ts";
import { quoteArray, quoteLiteral } from "./identifiers.ts";
import type { RelayTables } from "./relay-tables.ts";

/**
 * Locks those of the lanes that are free, owned by a dead instance or by the caller, and returns their owners. An
 * instance counts as alive until its row is deleted: the lock on that row decides between its last renewal and its
 * reaper. A caller without a row gets nothing. Takes `$1` pipeline, `$2` the caller, `$3` lanes.
 *
 * Which lock blocks which, all on the lane's row:
 * - FOR UPDATE, here, does not wait (SKIP LOCKED) and skips a row with any lock: a running settle or claim of the
 * former owner finishes first, and the lane is taken over in the next round.
 * - A settle's plain UPDATE takes FOR NO KEY UPDATE. It conflicts with FOR UPDATE, but not with FOR KEY SHARE.
 * - Durable claims and reviews take FOR KEY SHARE. They conflict only with FOR UPDATE, hence with a takeover but not
 * with the settles of their own lane.
 *
 * A plain UPDATE instead of FOR UPDATE would let a claim and a takeover run side by side: the claim would commit under
 * a grant that is gone.
 */
export const lockFreeLanesSql = ({ lanes, instances }: RelayTables): string => `
select l.lane, l.owner from ${lanes} l
where l.pipeline = $1 and l.lane = any($3::int[])
  and (l.owner is null or l.owner = $2::uuid or not exists (select from ${instances} i where i.id = l.owner))
  and exists (select from ${instances} i where i.id = $2::uuid)
for update of l skip locked`;

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

/**
 * Gives locked lanes to the caller. The conditions are checked again: this statement's snapshot is newer than the lock,
 * while the locking statement may have used a list of instances older than a fresh owner.
 *
 * The epoch also follows the database's clock in milliseconds, so that a standby promoted without the last commits
 * cannot issue an epoch twice; it rises by at least one, so that a clock that stepped back cannot either.
 *
 * A caller that assumes another number of lanes gets none: it would look for the events of one lane in another. That
 * number changes only under the lock of every lane. Takes the parameters of `lockFreeLanesSql` and `$4` the number.
 */
export const takeLanesSql = ({ lanes, instances, pipelines }: RelayTables, timeline: string | null): string => `
update ${lanes} l set
  crashes = l.crashes + (case when l.owner <> $2::uuid then 1 else 0 end),
  owner = $2::uuid,
  epoch = greatest(l.epoch + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint)
where l.pipeline = $1 and l.lane = any($3::int[])
  and (l.owner is null or l.owner = $2::uuid or not exists (select from ${instances} i where i.id = l.owner))
  and exists (select from ${instances} i where i.id = $2::uuid)
  and exists (select from ${pipelines} p where p.name = $1 and p.lanes = $4::int)
returning l.lane, l.epoch, l.settled_batch, l.crashes, l.ledgered_batch, ${timeline}`;
