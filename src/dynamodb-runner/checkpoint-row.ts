import type { AttributeValue } from "@aws-sdk/client-dynamodb";

/** How far one relay has read one shard, and which runner owns it. */
export interface CheckpointRow {
  readonly relay: string;
  readonly shard: string;
  /** The stream that the shard belongs to. A table with a new stream has new shards. */
  readonly stream: string;
  /** Everything up to this sequence number is relayed; null: nothing yet. */
  readonly position: string | null;
  /** The shard is closed and read to its end. */
  readonly isDone: boolean;
  /** Why no runner may continue before `dynamodb recover`; null if all is well. */
  readonly lost: string | null;
  readonly owner: string | null;
  /** Rises with each owner: a write with an older fence changes nothing. */
  readonly fence: number;
  /** The heartbeat counter. An owner whose beat does not change for the time of a lease is dead. */
  readonly beat: number;
}

type Item = Readonly<Record<string, AttributeValue>>;

/** Reads a checkpoint item. */
export function checkpointRow(item: Item): CheckpointRow {
  return {
    relay: item.relay?.S ?? "",
    shard: item.shard?.S ?? "",
    stream: item.stream_arn?.S ?? "",
    position: item.place?.S ?? null,
    isDone: item.is_done?.BOOL ?? false,
    lost: item.lost?.S ?? null,
    owner: item.owned_by?.S ?? null,
    fence: Number(item.fence?.N ?? 0),
    beat: Number(item.beat?.N ?? 0),
  };
}
