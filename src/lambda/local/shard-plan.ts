import type { StreamShard } from "./change-stream.ts";
import type { CheckpointRow } from "./checkpoint-row.ts";

/** The row of a relay that belongs to no shard: whoever owns it relays what is due, and searches the table at first. */
export const SWEEP = "(sweep)";

/** What a relay may read now: whatever has no parent that is still to be read to its end. */
export function readableShards(shards: readonly StreamShard[], rows: readonly CheckpointRow[]): readonly StreamShard[] {
  const listed = new Set(shards.map(({ id }) => id));
  const done = new Set(rows.filter(({ isDone }) => isDone).map(({ shard }) => shard));
  // A parent that the stream no longer lists is gone, and was either read or is told as lost.
  const mayFollow = (parentId: string | null) => parentId === null || done.has(parentId) || !listed.has(parentId);
  return shards.filter(({ id, parentId }) => !done.has(id) && mayFollow(parentId));
}

/** Why a relay must not go on: something may have left the stream unread. Null when all is well. */
export function lostPlace(
  stream: string,
  shards: readonly StreamShard[],
  rows: readonly CheckpointRow[],
): string | null {
  for (const row of rows) {
    const fault = faultOf(stream, shards, row);
    if (fault !== null) return fault;
  }
  return null;
}

/** Rows of shards that were read to their end and are gone. */
export function outlivedRows(shards: readonly StreamShard[], rows: readonly CheckpointRow[]): readonly CheckpointRow[] {
  return rows.filter(({ isDone, shard }) => isDone && !shards.some(({ id }) => id === shard));
}

/** After a recovery: rows of shards that are gone are void, the others begin anew at the oldest that is left. */
export function isVoid(stream: string, shards: readonly StreamShard[], row: CheckpointRow): boolean {
  return row.stream !== stream || !shards.some(({ id }) => id === row.shard);
}

function faultOf(stream: string, shards: readonly StreamShard[], row: CheckpointRow): string | null {
  const { isDone, lost, shard } = row;
  if (lost !== null) return lost;
  if (row.stream !== stream)
    return `The table has another stream (${stream}) than the one read before (${row.stream}).`;
  if (shard === SWEEP || isDone || shards.some(({ id }) => id === shard)) return null;
  return `The shard ${shard} is gone and was not read to its end.`;
}
