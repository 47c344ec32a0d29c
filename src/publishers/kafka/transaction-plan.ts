import type { Message } from "../../core/event.ts";
import type { BatchLimits } from "./kafka-config.ts";
import { partitionOf } from "./kafka-partitions.ts";
import { type Item, recordBytesMax } from "./kafka-records.ts";
import type { TopicInfo } from "./kafka-topics.ts";

/** Records for one partition in one request. */
export interface TransactionBatch {
  readonly topic: string;
  readonly partition: number;
  readonly items: Item[];
  /** An upper bound of the batch's size on the wire. */
  bytes: number;
}

/** The requests of a round are sent in parallel, one per broker; a partition is in a round at most once. */
export type TransactionRound = TransactionBatch[];

/** What limits the batches of a transaction. */
export interface TransactionRules {
  readonly limits: BatchLimits;
  topicInfo(topic: string): TopicInfo;
  /** The maximum number of records per batch of this partition. */
  countMax(topic: string, partition: number): number;
  /** Messages without a key go to one partition per transaction, and to the next one in the following transaction. */
  readonly spread: number;
}

/** Far below a broker's request limit, and enough to keep it busy. */
const ROUND_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Sorts the messages of a transaction into rounds. Messages of one partition keep their order. Order across partitions
 * does not matter, because all records become visible together.
 */
export function planRounds(items: readonly Item<Message>[], rules: TransactionRules): TransactionRound[] {
  return roundsOf(queuesOf(items, rules));
}

/** Adds the note to the last round. */
export function addNote(rounds: TransactionRound[], note: TransactionBatch): void {
  const last = rounds.at(-1);
  if (last !== undefined && bytesOf(last) + note.bytes <= ROUND_BYTES_MAX) last.push(note);
  else rounds.push([note]);
}

/** The batches of one partition, in the order in which they are sent. */
interface PartitionQueue {
  readonly batches: TransactionBatch[];
  readonly bytesMax: number;
  readonly countMax: number;
}

function queuesOf(items: readonly Item<Message>[], rules: TransactionRules): PartitionQueue[] {
  const queues: PartitionQueue[] = [];
  const topics = new Map<string, { readonly info: TopicInfo; readonly byPartition: PartitionQueue[] }>();
  for (const item of items) {
    const { topic, key } = item.message;
    let known = topics.get(topic);
    if (known === undefined) {
      known = { info: rules.topicInfo(topic), byPartition: [] };
      topics.set(topic, known);
    }
    const { info, byPartition } = known;
    const partition = key === null ? anyPartition(info, rules.spread) : partitionOf(key, info.leaders.length);
    let queue = byPartition[partition];
    if (queue === undefined) {
      queue = { batches: [], bytesMax: rules.limits.of(topic), countMax: rules.countMax(topic, partition) };
      byPartition[partition] = queue;
      queues.push(queue);
    }
    enqueue(queue, item, partition);
  }
  return queues;
}

function enqueue({ batches, bytesMax, countMax }: PartitionQueue, item: Item<Message>, partition: number): void {
  const bytes = recordBytesMax(item);
  const last = batches.at(-1);
  if (last === undefined || last.bytes + bytes > bytesMax || last.items.length >= countMax)
    batches.push({ topic: item.message.topic, partition, items: [item], bytes });
  else {
    last.items.push(item);
    last.bytes += bytes;
  }
}

function roundsOf(queues: readonly PartitionQueue[]): TransactionRound[] {
  const rounds: TransactionRound[] = [];
  let waiting = queues.map(({ batches }) => batches);
  while (waiting.length > 0) {
    const round: TransactionRound = [];
    let bytes = 0;
    for (const batches of waiting) {
      const [next] = batches as [TransactionBatch];
      if (round.length > 0 && bytes + next.bytes > ROUND_BYTES_MAX) continue;
      round.push(next);
      bytes += next.bytes;
      batches.shift();
    }
    rounds.push(round);
    waiting = waiting.filter((batches) => batches.length > 0);
  }
  return rounds;
}

function bytesOf(round: TransactionRound): number {
  return round.reduce((bytes, batch) => bytes + batch.bytes, 0);
}

function anyPartition({ leaders }: TopicInfo, spread: number): number {
  const first = spread % leaders.length;
  for (let step = 0; step < leaders.length; step++) {
    const partition = (first + step) % leaders.length;
    if (leaders[partition] !== null) return partition;
  }
  return first;
}
