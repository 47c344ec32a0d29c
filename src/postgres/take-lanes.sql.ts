import type { RelayTables } from "./relay-tables.ts";

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
