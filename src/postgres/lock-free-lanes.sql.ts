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
