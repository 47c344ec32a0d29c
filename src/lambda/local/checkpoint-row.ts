import type { AttributeValue } from "@aws-sdk/client-dynamodb";

/** How far one relay has read one shard, and who reads it. */
export interface CheckpointRow {
  readonly relay: string;
  readonly shard: string;
  /** The stream that the shard belongs to: a table that gets another one begins anew. */
  readonly stream: string;
  /** Everything up to this sequence number is done; null: nothing yet. */
  readonly place: string | null;
  /** The shard is closed and was read to its end. */
  readonly isDone: boolean;
  /** Why nobody may go on here before a recovery; null: all is well. */
  readonly lost: string | null;
  readonly owner: string | null;
  /** Rises with each owner: whoever names an older one writes nothing. */
  readonly fence: number;
  /** Rises with each sign of life. One that stands still for a lease is that of a dead owner. */
  readonly beat: number;
}

type Item = Readonly<Record<string, AttributeValue>>;

export function checkpointRow(item: Item): CheckpointRow {
  return {
    relay: item.relay?.S ?? "",
    shard: item.shard?.S ?? "",
    stream: item.stream_arn?.S ?? "",
    place: item.place?.S ?? null,
    isDone: item.is_done?.BOOL ?? false,
    lost: item.lost?.S ?? null,
    owner: item.owned_by?.S ?? null,
    fence: Number(item.fence?.N ?? 0),
    beat: Number(item.beat?.N ?? 0),
  };
}
