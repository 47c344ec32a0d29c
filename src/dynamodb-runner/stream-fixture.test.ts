import assert from "node:assert/strict";
import { test } from "node:test";
import {
  DescribeStreamCommand,
  type DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
} from "@aws-sdk/client-dynamodb-streams";
import type { Clock } from "../core/clock.ts";
import type { IntentHandler } from "../lambda/intent-handler.ts";
import type { BatchResponse, IntentEvent } from "../lambda/lambda-events.ts";
import type { TechnicalEvent, TechnicalEvents } from "../ports/technical-events.ts";
import { TechnicalEventBus } from "../relay/technical-event-bus.ts";
import { openChangeStream } from "./change-stream.ts";
import type { CheckpointRow, Checkpoints, ShardGrant } from "./checkpoints.ts";

export const ARN = "arn:aws:dynamodb:eu-central-1:000000000000:table/outbox/stream/1";

interface FakeShard {
  readonly id: string;
  readonly parentId?: string;
  /** Sequence numbers and types; an empty type is that of an item without one. */
  readonly records: { readonly sequence: number; readonly type: string }[];
  isClosed: boolean;
  /** What is below has left the stream. */
  trimmedBelow: number;
}

/** What DynamoDB Local cannot do: shards that split and close, iterators that expire, records that are trimmed. */
export class FakeStreams {
  readonly shards: FakeShard[] = [];
  readonly asked: string[] = [];
  /** Of the next requests for records, so many are refused with this. */
  refusals: string[] = [];
  /** Shards in one answer of DescribeStream. */
  pageSize = 100;

  shard(id: string, sequences: readonly number[], parentId?: string, type = "A"): FakeShard {
    const records = sequences.map((sequence) => ({ sequence, type }));
    const shard = { id, records, isClosed: false, trimmedBelow: 0, ...(parentId === undefined ? {} : { parentId }) };
    this.shards.push(shard);
    return shard;
  }

  open() {
    return openChangeStream(this.client, ARN);
  }

  get client(): Pick<DynamoDBStreamsClient, "send"> {
    return { send: (async (command: unknown) => this.#answer(command)) as unknown as DynamoDBStreamsClient["send"] };
  }

  #answer(command: unknown): object {
    if (command instanceof DescribeStreamCommand) return this.#described(command.input.ExclusiveStartShardId);
    if (command instanceof GetShardIteratorCommand) {
      const { SequenceNumber = "0", ShardId = "" } = command.input;
      this.asked.push(`${ShardId} after ${SequenceNumber}`);
      const shard = this.#shardOf(ShardId);
      if (command.input.ShardIteratorType === "TRIM_HORIZON") {
        return { ShardIterator: `${ShardId} ${Math.max(0, shard.trimmedBelow - 1)}` };
      }
      if (Number(SequenceNumber) < shard.trimmedBelow - 1) throw named("TrimmedDataAccessException");
      return { ShardIterator: `${ShardId} ${SequenceNumber}` };
    }
    if (command instanceof GetRecordsCommand) return this.#records(command.input.ShardIterator ?? "");
    throw new Error("no such command");
  }

  #described(from: string | undefined): object {
    const at = from === undefined ? 0 : this.shards.findIndex(({ id }) => id === from) + 1;
    const page = this.shards.slice(at, at + this.pageSize);
    const isLast = at + this.pageSize >= this.shards.length;
    return {
      StreamDescription: {
        Shards: page.map(({ id, parentId }) => ({ ShardId: id, ParentShardId: parentId })),
        LastEvaluatedShardId: isLast ? undefined : page.at(-1)?.id,
      },
    };
  }

  #records(iterator: string): object {
    const refusal = this.refusals.shift();
    if (refusal !== undefined) throw named(refusal);
    const [id = "", after = "0"] = iterator.split(" ");
    const { isClosed, records } = this.#shardOf(id);
    const next = records.filter(({ sequence }) => sequence > Number(after));
    const last = next.at(-1)?.sequence ?? Number(after);
    return {
      Records: next.map(({ sequence, type }) => ({
        eventName: "INSERT",
        dynamodb: {
          SequenceNumber: String(sequence),
          NewImage: { id: { S: `i${sequence}` }, ...(type === "" ? {} : { intent: { M: { type: { S: type } } } }) },
        },
      })),
      NextShardIterator: isClosed ? undefined : `${id} ${last}`,
    };
  }

  #shardOf(id: string): FakeShard {
    const shard = this.shards.find((it) => it.id === id);
    if (shard === undefined) throw named("ResourceNotFoundException");
    return shard;
  }
}

function named(name: string): Error {
  return Object.assign(new Error(`the stream says ${name}`), { name });
}

/** The table of checkpoints in memory, with the same conditions. */
export class FakeCheckpoints {
  readonly rows = new Map<string, CheckpointRow>();
  /** Set while nothing can be written. */
  isDown = false;

  of(owner: string): Checkpoints {
    const put = (row: CheckpointRow) => this.rows.set(`${row.relay} ${row.shard}`, row);
    const mine = ({ fence, relay, shard }: ShardGrant) => {
      if (this.isDown) throw named("TimeoutError");
      const row = this.rows.get(`${relay} ${shard}`);
      return row?.owner === owner && row.fence === fence ? row : null;
    };
    return {
      ofRelay: async (relay) => [...this.rows.values()].filter((row) => row.relay === relay),
      take: async (seen) => {
        const row = this.rows.get(`${seen.relay} ${seen.shard}`);
        const isAsSeen = row === undefined ? seen.fence === 0 : row.fence === seen.fence && row.beat === seen.beat;
        if (!isAsSeen) return null;
        const fence = seen.fence + 1;
        put({ ...(row ?? seen), owner, fence, beat: 0 });
        return { relay: seen.relay, shard: seen.shard, fence };
      },
      renew: async (grant) => {
        const row = mine(grant);
        if (row !== null) put({ ...row, beat: row.beat + 1 });
        return row !== null;
      },
      save: async (grant, { isDone, lost, position }) => {
        const row = mine(grant);
        if (row === null) return false;
        const beat = row.beat + 1;
        put({ ...row, beat, position: position ?? row.position, isDone: isDone ?? row.isDone, lost: lost ?? row.lost });
        return true;
      },
      release: async (grant) => {
        const row = mine(grant);
        if (row !== null) put({ ...row, owner: null });
      },
      reset: async (row) =>
        void put({ ...row, position: null, lost: null, isDone: false, owner: null, fence: row.fence + 1 }),
      remove: async ({ relay, shard }) => void this.rows.delete(`${relay} ${shard}`),
    };
  }
}

/** A handler that remembers what it was given; `answer` may refuse. */
export function fakeHandler(
  type: string,
  answer: (sequences: readonly string[]) => BatchResponse = () => ({ batchItemFailures: [] }),
): IntentHandler & { readonly seen: string[][] } {
  const seen: string[][] = [];
  const handle = async (event: IntentEvent) => {
    if (!("Records" in event)) return { batchItemFailures: [] };
    const sequences = event.Records.map(({ dynamodb }) => dynamodb?.SequenceNumber ?? "");
    const answered = answer(sequences);
    seen.push([...sequences]);
    return answered;
  };
  return Object.assign(handle, { type, addresses: [], seen, close: async () => {} });
}

export function recordedEvents(clock: Clock): {
  readonly events: TechnicalEvents;
  readonly reported: TechnicalEvent[];
} {
  const bus = new TechnicalEventBus(clock);
  const reported: TechnicalEvent[] = [];
  bus.onAny((event) => reported.push(event));
  return { events: bus, reported };
}

test("the table of the fixture takes a write only from the owner of the moment", async () => {
  const checkpoints = new FakeCheckpoints();
  const row = {
    relay: "r",
    shard: "s",
    stream: ARN,
    position: null,
    isDone: false,
    lost: null,
    owner: null,
    fence: 0,
    beat: 0,
  };
  const grant = await checkpoints.of("one").take(row);
  assert.ok(grant);
  assert.equal(await checkpoints.of("two").take(row), null);
  assert.deepEqual([await checkpoints.of("one").renew(grant), await checkpoints.of("two").renew(grant)], [true, false]);
});
