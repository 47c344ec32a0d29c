import type { _Record, DynamoDBStreamsClient, Shard } from "@aws-sdk/client-dynamodb-streams";
import { RelayError, reasonOf } from "../core/errors.ts";
import { translateError } from "../dynamodb/dynamodb-errors.ts";
import { loadStreams } from "./stream-client.ts";

/** A change as the SDK returns it. */
export type Change = _Record;

/** A shard of the stream. */
export interface StreamShard {
  readonly id: string;
  /** The parent must be read to its end first: it holds the older changes of the same keys. */
  readonly parentId: string | null;
}

interface StreamPage {
  readonly records: readonly Change[];
  /** Null at the end of a closed shard. */
  readonly next: string | null;
}

/** The stream of a table, read shard by shard. */
export interface ChangeStream {
  readonly arn: string;
  /** All shards that the stream still lists, also closed ones. */
  shards(): Promise<readonly StreamShard[]>;
  /**
   * An iterator for the records after this sequence number; null starts at the oldest record. Throws STREAM_TRIMMED.
   */
  iteratorAfter(shardId: string, sequenceNumber: string | null): Promise<string>;
  /** Null when the iterator has expired: request another one. Throws STREAM_TRIMMED. */
  page(iterator: string): Promise<StreamPage | null>;
}

type StreamsSender = Pick<DynamoDBStreamsClient, "send">;

/** The service's limit. */
const PAGE_RECORDS = 1_000;
/** A stream keeps 24 hours and a shard lives for hours: a server that returns more pages than this repeats itself. */
const PAGES_MAX = 1_000;

/** The stream with this ARN. */
export async function openChangeStream(client: StreamsSender, arn: string): Promise<ChangeStream> {
  const { DescribeStreamCommand, GetRecordsCommand, GetShardIteratorCommand } = await loadStreams();
  return {
    arn,
    async shards() {
      const found: StreamShard[] = [];
      let last: string | undefined;
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const from = last === undefined ? {} : { ExclusiveStartShardId: last };
        const request = new DescribeStreamCommand({ StreamArn: arn, ...from });
        const { StreamDescription } = await client.send(request).catch((error: unknown) => {
          throw translateError(error, "listing the shards");
        });
        found.push(...(StreamDescription?.Shards ?? []).flatMap(shardOf));
        last = StreamDescription?.LastEvaluatedShardId;
        if (last === undefined) return found;
      }
      throw new Error(`the list of shards of the stream ${arn} does not end after ${PAGES_MAX} pages`);
    },
    async iteratorAfter(shardId, sequenceNumber) {
      const position =
        sequenceNumber === null
          ? { ShardIteratorType: "TRIM_HORIZON" as const }
          : { ShardIteratorType: "AFTER_SEQUENCE_NUMBER" as const, SequenceNumber: sequenceNumber };
      const request = new GetShardIteratorCommand({ StreamArn: arn, ShardId: shardId, ...position });
      const { ShardIterator } = await client.send(request).catch((error: unknown) => {
        throw isTrimmed(error) ? trimmed(shardId, error) : translateError(error, `reading the shard ${shardId}`);
      });
      if (ShardIterator === undefined) throw new Error(`DynamoDB returned no iterator for the shard ${shardId}`);
      return ShardIterator;
    },
    async page(iterator) {
      try {
        const request = new GetRecordsCommand({ ShardIterator: iterator, Limit: PAGE_RECORDS });
        const { NextShardIterator, Records = [] } = await client.send(request);
        return { records: Records, next: NextShardIterator ?? null };
      } catch (error) {
        if (nameOf(error) === "ExpiredIteratorException") return null;
        throw isTrimmed(error) ? trimmed("being read", error) : translateError(error, "reading the stream");
      }
    },
  };
}

function shardOf({ ParentShardId, ShardId }: Shard): StreamShard[] {
  return ShardId === undefined ? [] : [{ id: ShardId, parentId: ParentShardId ?? null }];
}

/** A listed shard that no longer exists was trimmed, with the records it held. */
function isTrimmed(error: unknown): boolean {
  return ["TrimmedDataAccessException", "ResourceNotFoundException"].includes(nameOf(error));
}

function trimmed(shard: string, cause: unknown): RelayError {
  const what = `The shard ${shard} no longer holds the next record (${reasonOf(cause, 300)}).`;
  return new RelayError("STREAM_TRIMMED", what, { cause });
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "";
}
