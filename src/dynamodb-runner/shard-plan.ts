import type { StreamShard } from "./change-stream.ts";
import type { CheckpointRow } from "./checkpoints.ts";

/** The relay's row that belongs to no shard: its owner relays due intents and first searches the table once. */
export const SWEEP = "(sweep)";

/** The shards that a relay may read now: those whose parent is read to its end, which keeps the order per key. */
export function readableShards(shards: readonly StreamShard[], rows: readonly CheckpointRow[]): readonly StreamShard[] {
  const listed = new Set(shards.map(({ id }) => id));
  const done = new Set(rows.filter(({ isDone }) => isDone).map(({ shard }) => shard));
  // A parent that the stream no longer lists was either read or is reported as lost.
  const mayFollow = (parentId: string | null) => parentId === null || done.has(parentId) || !listed.has(parentId);
  return shards.filter(({ id, parentId }) => !done.has(id) && mayFollow(parentId));
}

/** Why a relay must halt: records may have left the stream unread. Null when all is well. */
export function lostPosition(
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

/** The rows of shards that were read to their end and no longer exist. */
export function finishedRows(shards: readonly StreamShard[], rows: readonly CheckpointRow[]): readonly CheckpointRow[] {
  return rows.filter(({ isDone, shard }) => isDone && !shards.some(({ id }) => id === shard));
}

/** Whether a recovery removes the row: its shard no longer exists. Other rows restart at the oldest record. */
export function isObsolete(stream: string, shards: readonly StreamShard[], row: CheckpointRow): boolean {
  return row.stream !== stream || !shards.some(({ id }) => id === row.shard);
}

function faultOf(stream: string, shards: readonly StreamShard[], row: CheckpointRow): string | null {
  const { isDone, lost, shard } = row;
  if (lost !== null) return lost;
  if (row.stream !== stream)
    return `The table has a new stream (${stream}); the former one (${row.stream}) may have held unread records.`;
  if (shard === SWEEP || isDone || shards.some(({ id }) => id === shard)) return null;
  return `The shard ${shard} was trimmed before it was read to its end.`;
}
