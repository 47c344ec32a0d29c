import type { Message } from "../../core/event.ts";
import type { BatchLimits } from "./kafka-limits.ts";
import { partitionOf } from "./kafka-partitions.ts";
import { type Item, recordBytesMax } from "./kafka-records.ts";
import type { TopicInfo } from "./kafka-topics.ts";

/** Records for one partition that go in one request. */
export interface TransactionBatch {
  readonly topic: string;
  readonly partition: number;
  readonly items: Item[];
  /** Never less than what the batch takes on the wire. */
  bytes: number;
}

/** Requests of one round are sent at the same time, to each broker one; a partition is in a round at most once. */
export type TransactionRound = TransactionBatch[];

export interface TransactionRules {
  readonly limits: BatchLimits;
  topicInfo(topic: string): TopicInfo;
  /** Records that a batch of this partition may hold. */
  countMax(topic: string, partition: number): number;
  /** Messages without a key go to one partition per transaction, and to another one at the next. */
  readonly spread: number;
}

/** Far below what a broker takes in one request, and enough to keep it busy. */
const ROUND_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Sorts the messages of a transaction into rounds. Messages of one partition keep their order; between partitions
 * there is none to keep, since all of them become visible together. The note goes with the last round.
 */
export function planTransaction(
  items: readonly Item<Message>[],
  note: TransactionBatch,
  rules: TransactionRules,
): readonly TransactionRound[] {
  const rounds = roundsOf(queuesOf(items, rules));
  const last = rounds.at(-1);
  if (last !== undefined && bytesOf(last) + note.bytes <= ROUND_BYTES_MAX) last.push(note);
  else rounds.push([note]);
  return rounds;
}

function queuesOf(items: readonly Item<Message>[], rules: TransactionRules): TransactionBatch[][] {
  const queues: TransactionBatch[][] = [];
  const topics = new Map<string, { readonly info: TopicInfo; readonly byPartition: TransactionBatch[][] }>();
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
      queue = [];
      byPartition[partition] = queue;
      queues.push(queue);
    }
    enqueue(queue, item, partition, rules);
  }
  return queues;
}

function enqueue(queue: TransactionBatch[], item: Item<Message>, partition: number, rules: TransactionRules): void {
  const { topic } = item.message;
  const bytes = recordBytesMax(item);
  const last = queue.at(-1);
  const isFull =
    last !== undefined &&
    (last.bytes + bytes > rules.limits.of(topic) || last.items.length >= rules.countMax(topic, partition));
  if (last === undefined || isFull) queue.push({ topic, partition, items: [item], bytes });
  else {
    last.items.push(item);
    last.bytes += bytes;
  }
}

function roundsOf(queues: readonly TransactionBatch[][]): TransactionRound[] {
  const rounds: TransactionRound[] = [];
  for (let waiting = queues.filter((queue) => queue.length > 0); waiting.length > 0; ) {
    const round: TransactionRound = [];
    let bytes = 0;
    for (const queue of waiting) {
      const [next] = queue as [TransactionBatch];
      if (round.length > 0 && bytes + next.bytes > ROUND_BYTES_MAX) continue;
      round.push(next);
      bytes += next.bytes;
      queue.shift();
    }
    rounds.push(round);
    waiting = waiting.filter((queue) => queue.length > 0);
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
