import { setTimeout as pauseMs } from "node:timers/promises";
import { RelayError } from "../../core/errors.ts";
import type { CommittedBatch } from "../../ports/transactions.ts";
import { apiOf, connectionTo, type KafkaConnection } from "./kafka-client.ts";
import { CODE, describeCode } from "./kafka-error-codes.ts";
import { answersIn } from "./kafka-errors.ts";
import { findLedger, type KafkaAccess, type LedgerPlace } from "./ledger-place.ts";
import { decodeNote } from "./ledger-record.ts";
import { type FetchedBatch, LedgerTail } from "./ledger-tail.ts";

/** Where a lane's notes stand. */
interface LaneNotes {
  readonly partition: number;
  /** What the keys of the lane's records begin with. */
  readonly prefix: string;
}

interface Offsets {
  readonly topics: readonly { readonly partitions: readonly { readonly offset: bigint }[] }[];
}

interface Fetched {
  readonly throttleTimeMs: number;
  readonly responses: readonly {
    readonly partitions: readonly { readonly highWatermark: bigint; readonly records: FetchedBatch[] | null }[];
  }[];
}

const READ_UNCOMMITTED = 0;
const LATEST = -1n;
const EARLIEST = -2n;
/** A reader, not a replica. */
const NO_REPLICA = -1;
const NO_SESSION = { id: 0, epoch: -1 };
/** From here on topics are named by their ids. */
const FETCH_BY_ID = 13;

/** Offsets of the first step back: each transaction takes two, and mostly only the last few are wanted. */
const FIRST_STEP = 16n;
/** One answer's bytes; a single larger record comes whole. */
const FETCH_BYTES_MAX = 1 << 20;
const RETRY_PAUSE_MS = 20;
/** A partition that one broker knows already may be news to another one for so long. */
const NEWS_MS = 2_000;
/** A bound for callers without a deadline of their own. */
const PATIENCE_MS = 30_000;

/** Answers after which the leader has to be asked for anew. */
const MOVED: ReadonlySet<number> = new Set([
  CODE.OFFSET_OUT_OF_RANGE,
  CODE.LEADER_NOT_AVAILABLE,
  CODE.NOT_LEADER_OR_FOLLOWER,
  CODE.FENCED_LEADER_EPOCH,
  CODE.UNKNOWN_LEADER_EPOCH,
  CODE.OFFSET_NOT_AVAILABLE,
  CODE.UNKNOWN_TOPIC_ID,
  CODE.INCONSISTENT_TOPIC_ID,
]);

/**
 * The lane's last committed notes, above `after` or else the last one. The lane must be fenced: only then is every
 * transaction of it decided.
 *
 * The client's consumer is not used, because it delivers aborted records. This reads everything up to the high
 * watermark, undecided transactions of others included, and decides by the markers itself: so another lane's open
 * transaction in the same partition does not hold it up, as it would hold up a reader of committed records.
 */
export async function readLedger(
  access: KafkaAccess,
  lane: LaneNotes,
  after: bigint,
): Promise<readonly CommittedBatch[]> {
  const startedMs = performance.now();
  for (;;) {
    const place = await findLedger(access);
    const passedMs = performance.now() - startedMs;
    if (place.partitions[lane.partition] === undefined && passedMs > NEWS_MS) throw missing(access, lane, place.code);
    const tail = await tryRead(access, lane, after, place);
    if (tail !== null) return notesIn(tail, after, access, lane);
    if (passedMs > PATIENCE_MS) throw new Error(`${whereIs(access, lane)} did not come to rest`);
    await pauseMs(RETRY_PAUSE_MS);
  }
}

/** Null when it has to be read again: the partition moved, or a transaction of the lane is not decided yet. */
async function tryRead(
  access: KafkaAccess,
  lane: LaneNotes,
  after: bigint,
  place: LedgerPlace,
): Promise<LedgerTail | null> {
  const leader = place.partitions[lane.partition]?.leader ?? null;
  if (leader === null) return null;
  try {
    const connection = await connectionTo(access.kafka, access.client, leader);
    const read = new PartitionReading(access, connection, lane.partition, place.topicId);
    const tail = new LedgerTail(lane.prefix, access.settings.ledger.ringSize, after);
    const start = await read.offsetAt(EARLIEST);
    let to = await read.offsetAt(LATEST);
    for (let step = FIRST_STEP; to > start && !tail.isComplete; step *= 2n) {
      const from = to - step > start ? to - step : start;
      const isWhole = await read.forward(from, to, (batch) => tail.take(batch));
      if (!isWhole || !tail.closeWindow()) return null;
      to = from;
    }
    return tail;
  } catch (error) {
    if (answersIn(error).some(({ code }) => MOVED.has(code))) return null;
    throw error;
  }
}

function notesIn(tail: LedgerTail, after: bigint, access: KafkaAccess, lane: LaneNotes): readonly CommittedBatch[] {
  return tail
    .notesAbove(after)
    .map(({ value, offset }) => decodeNote(value, `${whereIs(access, lane)}, offset ${offset}`));
}

function whereIs({ settings }: KafkaAccess, { partition }: LaneNotes): string {
  return `topic "${settings.ledger.topic}", partition ${partition}`;
}

function missing(access: KafkaAccess, lane: LaneNotes, code: number): RelayError {
  const why = code === CODE.NONE ? "it has fewer partitions now" : describeCode(code);
  return new RelayError("LEDGER_UNFIT", `The ledger in ${whereIs(access, lane)} is gone: ${why}.`);
}

/** One partition of the ledger on its leader. */
class PartitionReading {
  readonly #access: KafkaAccess;
  readonly #connection: KafkaConnection;
  readonly #partition: number;
  readonly #topicId: string;

  constructor(access: KafkaAccess, connection: KafkaConnection, partition: number, topicId: string) {
    this.#access = access;
    this.#connection = connection;
    this.#partition = partition;
    this.#topicId = topicId;
  }

  async offsetAt(timestamp: bigint): Promise<bigint> {
    const { kafka, client, settings } = this.#access;
    const api = await apiOf(kafka, client, "ListOffsets");
    const partitions = [{ partitionIndex: this.#partition, currentLeaderEpoch: -1, timestamp }];
    const topics = [{ name: settings.ledger.topic, partitions }];
    const answer = (await api.async(this.#connection, NO_REPLICA, READ_UNCOMMITTED, topics)) as Offsets;
    return answer.topics[0]!.partitions[0]!.offset;
  }

  /** Every record batch that begins in [from, to), in its order. False when the log does not reach so far any more. */
  async forward(from: bigint, to: bigint, take: (batch: FetchedBatch) => void): Promise<boolean> {
    for (let next = from; next < to; ) {
      const { throttleTimeMs, responses } = await this.#fetch(next);
      const found = responses[0]?.partitions[0];
      if (found === undefined) {
        // A throttled answer holds nothing, and that means nothing.
        await pauseMs(Math.max(throttleTimeMs, RETRY_PAUSE_MS));
        continue;
      }
      if (found.highWatermark < to) return false;
      const batches = found.records ?? [];
      // Compaction may have left nothing at all from here to the end.
      if (batches.length === 0) return true;
      for (const batch of batches) {
        if (batch.firstOffset >= from && batch.firstOffset < to) take(batch);
        next = batch.firstOffset + BigInt(batch.lastOffsetDelta) + 1n;
      }
    }
    return true;
  }

  async #fetch(fetchOffset: bigint): Promise<Fetched> {
    const { kafka, client, settings } = this.#access;
    const api = await apiOf(kafka, client, "Fetch");
    const topicId = api.version < FETCH_BY_ID ? settings.ledger.topic : this.#topicId;
    const position = { currentLeaderEpoch: -1, lastFetchedEpoch: -1, partitionMaxBytes: FETCH_BYTES_MAX };
    const topics = [{ topicId, partitions: [{ partition: this.#partition, fetchOffset, ...position }] }];
    const request = [0, 1, FETCH_BYTES_MAX, READ_UNCOMMITTED, NO_SESSION.id, NO_SESSION.epoch, topics, [], ""];
    return (await api.async(this.#connection, ...request)) as Fetched;
  }
}
