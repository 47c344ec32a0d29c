import type { RelayTables } from "./relay-tables.ts";

/**
 * Locks those of the lanes that nobody living owns, or the caller itself, and shows their owners. An instance lives
 * until its row is deleted: the lock on that row has decided between its last renewal and its reaper. A caller without
 * a row gets nothing. Takes `$1` pipeline, `$2` the caller, `$3` lanes.
 *
 * Which lock hinders which, all on the lane's row:
 * - FOR UPDATE, here, waits for nobody (SKIP LOCKED) but passes over a row that is locked in any way: a settle or a
 *   claim of the former owner that is under way ends first, and the lane is taken in the next round.
 * - A settle's plain UPDATE takes FOR NO KEY UPDATE. It conflicts with FOR UPDATE, not with FOR KEY SHARE.
 * - Claims written into rows, and reviews, take FOR KEY SHARE. They conflict with FOR UPDATE alone, hence with a
 *   take-over and not with the settles of their own lane.
 * A plain UPDATE instead of FOR UPDATE would let a claim and a take-over go on side by side: the claim would commit
 * under a grant that is gone.
 */
export const lockFreeLanesSql = ({ lanes, instances }: RelayTables): string => `
select l.lane, l.owner from ${lanes} l
where l.pipeline = $1 and l.lane = any($3::int[])
  and (l.owner is null or l.owner = $2::uuid or not exists (select from ${instances} i where i.id = l.owner))
  and exists (select from ${instances} i where i.id = $2::uuid)
for update of l skip locked`;
