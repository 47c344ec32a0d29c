import type { Message } from "../../core/event.ts";
import type { BatchLimits } from "./kafka-config.ts";
import type { DraftBatch } from "./kafka-link.ts";
import { partitionOf } from "./kafka-partitions.ts";
import { type Item, recordBytesMax } from "./kafka-records.ts";
import type { TopicInfo } from "./kafka-topics.ts";

/** A batch of one round. */
export interface PlannedBatch extends DraftBatch {
  readonly items: Item<Message>[];
  /** An upper bound of the batch's size on the wire. */
  bytes: number;
  isFull: boolean;
  readonly bytesMax: number;
  readonly countMax: number;
}

interface Round {
  readonly batches: readonly PlannedBatch[];
  /** Items for a later round, in order. */
  readonly later: readonly Item<Message>[];
  /** Items of keys that have failed. */
  readonly skipped: readonly Item<Message>[];
}

/** What limits a round. */
export interface PlanRules {
  readonly limits: BatchLimits;
  /** Null for a topic that is not looked up yet: its messages wait. */
  topicInfo(topic: string): TopicInfo | null;
  /** The index of the first failed message of each key: later messages of the key are not sent. */
  readonly failedKeys: ReadonlyMap<string, number>;
  /**
   * The maximum number of records per batch of this partition, lowered when a broker refuses a batch without naming the
   * record.
   */
  countMax(topic: string, partition: number): number;
  /** Messages without a key go to one partition per publish, and to the next one in the following publish. */
  readonly spread: number;
}

/** Far below a broker's request limit, and enough to keep it busy. */
const ROUND_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Sorts messages into one batch per partition. To keep the order per key, a message that does not fit into the same
 * batch as the earlier ones of its key waits for a later round, with all later messages of the key.
 */
export function planRound(items: readonly Item<Message>[], rules: PlanRules): Round {
  const { failedKeys } = rules;
  const slots = new Slots(rules);
  // Usually a key determines the batch, and nothing has to be remembered per key.
  const batchOfKey = isUniform(items) ? null : new Map<string, PlannedBatch>();
  const waitingKeys = new Set<string>();
  const later: Item<Message>[] = [];
  const skipped: Item<Message>[] = [];
  let roundBytes = 0;
  for (const item of items) {
    const { key } = item.message.event;
    if (failedKeys.size > 0 && key !== null && item.index > (failedKeys.get(key) ?? item.index)) {
      skipped.push(item);
      continue;
    }
    const isWaiting = waitingKeys.size > 0 && key !== null && waitingKeys.has(key);
    const batch = isWaiting || roundBytes > ROUND_BYTES_MAX ? null : slots.find(item);
    const before = key === null || batch === null ? undefined : batchOfKey?.get(key);
    if (batch === null || (before !== undefined && before !== batch)) {
      later.push(item);
      if (key !== null) waitingKeys.add(key);
      continue;
    }
    if (key !== null && before === undefined) batchOfKey?.set(key, batch);
    roundBytes += slots.put(batch, item);
  }
  return { batches: slots.batches, later, skipped };
}

/** True when all messages go to one topic under the keys of their events. */
function isUniform(items: readonly Item<Message>[]): boolean {
  const topic = items[0]?.message.topic;
  return items.every(({ message }) => message.topic === topic && message.key === message.event.key);
}

/** The batches of a round by topic and partition. */
class Slots {
  readonly batches: PlannedBatch[] = [];
  readonly #rules: PlanRules;
  readonly #topics = new Map<
    string,
    { readonly info: TopicInfo | null; readonly slots: (PlannedBatch | undefined)[] }
  >();

  constructor(rules: PlanRules) {
    this.#rules = rules;
  }

  /** The batch for the item; null when it has to wait. */
  find(item: Item<Message>): PlannedBatch | null {
    const { topic, key } = item.message;
    let known = this.#topics.get(topic);
    if (known === undefined) {
      known = { info: this.#rules.topicInfo(topic), slots: [] };
      this.#topics.set(topic, known);
    }
    const { info, slots } = known;
    if (info === null) return null;
    const partition = key === null ? this.#anyPartition(info) : partitionOf(key, info.leaders.length);
    let batch = slots[partition];
    if (batch === undefined) {
      const bytesMax = this.#rules.limits.of(topic);
      const countMax = this.#rules.countMax(topic, partition);
      batch = { topic, partition, items: [], bytes: 0, isFull: false, bytesMax, countMax };
      slots[partition] = batch;
    }
    return batch.items.length > 0 && this.#isFull(batch, item) ? null : batch;
  }

  /** Adds the item; returns its size in bytes. */
  put(batch: PlannedBatch, item: Item<Message>): number {
    const bytes = recordBytesMax(item);
    if (batch.items.length === 0) this.batches.push(batch);
    batch.items.push(item);
    batch.bytes += bytes;
    return bytes;
  }

  /** Full for the rest of the round: a smaller message must not overtake the one that did not fit. */
  #isFull(batch: PlannedBatch, item: Item<Message>): boolean {
    const { items, bytes, bytesMax, countMax } = batch;
    batch.isFull ||= bytes + recordBytesMax(item) > bytesMax || items.length >= countMax;
    return batch.isFull;
  }

  #anyPartition({ leaders }: TopicInfo): number {
    const first = this.#rules.spread % leaders.length;
    for (let step = 0; step < leaders.length; step++) {
      const partition = (first + step) % leaders.length;
      if (leaders[partition] !== null) return partition;
    }
    return first;
  }
}
