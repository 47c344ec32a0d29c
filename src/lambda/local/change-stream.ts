import type { _Record, DynamoDBStreamsClient, Shard } from "@aws-sdk/client-dynamodb-streams";
import { RelayError, reasonOf } from "../../core/errors.ts";
import { translateError } from "../../dynamodb/dynamodb-errors.ts";
import { loadStreams } from "./stream-client.ts";

/** A change as the SDK gives it. */
export type Change = _Record;

export interface StreamShard {
  readonly id: string;
  /** Read this one to its end first: it holds the older changes of the same keys. */
  readonly parentId: string | null;
}

interface StreamPage {
  readonly records: readonly Change[];
  /** Null at the end of a shard that is closed. */
  readonly next: string | null;
}

/** The stream of a table, read by shards. */
export interface ChangeStream {
  readonly arn: string;
  /** All that are left, also the closed ones. */
  shards(): Promise<readonly StreamShard[]>;
  /** For what comes behind this sequence number; null for the oldest that is left. Throws STREAM_TRIMMED. */
  iteratorAfter(shardId: string, sequenceNumber: string | null): Promise<string>;
  /** Null when the iterator is too old to be used: ask for another one. Throws STREAM_TRIMMED. */
  page(iterator: string): Promise<StreamPage | null>;
}

type StreamsSender = Pick<DynamoDBStreamsClient, "send">;

/** The most that the service gives at once. */
const PAGE_RECORDS = 1_000;
/** A stream keeps 24 h, and a shard lives for hours: more pages than this are a server that turns in circles. */
const PAGES_MAX = 1_000;

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
      throw new Error(`the stream ${arn} has no end of shards`);
    },
    async iteratorAfter(shardId, sequenceNumber) {
      const place =
        sequenceNumber === null
          ? { ShardIteratorType: "TRIM_HORIZON" as const }
          : { ShardIteratorType: "AFTER_SEQUENCE_NUMBER" as const, SequenceNumber: sequenceNumber };
      const request = new GetShardIteratorCommand({ StreamArn: arn, ShardId: shardId, ...place });
      const { ShardIterator } = await client.send(request).catch((error: unknown) => {
        throw isTrimmed(error) ? trimmed(shardId, error) : translateError(error, `reading the shard ${shardId}`);
      });
      if (ShardIterator === undefined) throw new Error(`the shard ${shardId} gave no iterator`);
      return ShardIterator;
    },
    async page(iterator) {
      try {
        const request = new GetRecordsCommand({ ShardIterator: iterator, Limit: PAGE_RECORDS });
        const { NextShardIterator, Records = [] } = await client.send(request);
        return { records: Records, next: NextShardIterator ?? null };
      } catch (error) {
        if (nameOf(error) === "ExpiredIteratorException") return null;
        throw isTrimmed(error) ? trimmed("that is read", error) : translateError(error, "reading the stream");
      }
    },
  };
}

function shardOf({ ParentShardId, ShardId }: Shard): StreamShard[] {
  return ShardId === undefined ? [] : [{ id: ShardId, parentId: ParentShardId ?? null }];
}

/** A shard that is asked for by a name from the list, and is not there, went away with what it held. */
function isTrimmed(error: unknown): boolean {
  return ["TrimmedDataAccessException", "ResourceNotFoundException"].includes(nameOf(error));
}

function trimmed(shard: string, cause: unknown): RelayError {
  const what = `The shard ${shard} no longer holds what comes next (${reasonOf(cause, 300)}).`;
  return new RelayError("STREAM_TRIMMED", what, { cause });
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "";
}
