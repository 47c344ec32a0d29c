import { setTimeout as pauseMs } from "node:timers/promises";
import { RelayError } from "../../core/errors.ts";
import type { CommittedBatch } from "../../ports/transactions.ts";
import { apiOf, connectionTo, type KafkaConnection } from "./kafka-client.ts";
import { CODE, describeCode } from "./kafka-error-codes.ts";
import { answersIn } from "./kafka-errors.ts";
import { produce } from "./kafka-produce.ts";
import { measure } from "./kafka-records.ts";
import { describeLedger, type KafkaAccess, type LedgerMetadata } from "./ledger-metadata.ts";
import { decodeNote, fenceKey } from "./ledger-record.ts";
import { type FetchedBatch, LedgerTail } from "./ledger-tail.ts";
import { refusedOnLedger } from "./transaction-rights.ts";

/** Where a lane's ledger records are. */
interface LaneNotes {
  readonly partition: number;
  /** The prefix of the keys of the lane's records. */
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
/** This client is not a replica. */
const NO_REPLICA = -1;
const NO_SESSION = { id: 0, epoch: -1 };
/** From this version on, requests name topics by id. */
const FETCH_BY_ID = 13;

/** The size of the first step back in offsets: a transaction takes two, and usually only the last few are needed. */
const FIRST_STEP = 16n;
/** The limit of one response; a single larger record is returned whole. */
const FETCH_BYTES_MAX = 1 << 20;
const RETRY_PAUSE_MS = 20;
/** How long a new partition may be unknown to some brokers. */
const METADATA_LAG_MS = 2_000;
/** A bound for callers without a deadline of their own. */
const TIMEOUT_MS = 30_000;

/** Answers after which the leader must be looked up again. */
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
 * Reads the lane's committed notes above `after`, or else the last one. The lane must be fenced first: only then are
 * all of its transactions decided.
 *
 * The client's consumer is not used, because it delivers aborted records. This reads everything up to the high
 * watermark, including undecided transactions of others, and evaluates the transaction markers itself. So an open
 * transaction of another lane in the same partition does not block it, as it would block a `read_committed` reader.
 */
export async function readLedger(
  access: KafkaAccess,
  lane: LaneNotes,
  after: bigint,
): Promise<readonly CommittedBatch[]> {
  const startedMs = performance.now();
  for (;;) {
    const metadata = await describeLedger(access);
    const passedMs = performance.now() - startedMs;
    if (metadata.partitions[lane.partition] === undefined && passedMs > METADATA_LAG_MS)
      throw missing(access, lane, metadata.code);
    const tail = await tryRead(access, lane, after, metadata);
    if (tail instanceof LedgerTail) return notesIn(tail, after, access, lane);
    if (tail !== null && passedMs > METADATA_LAG_MS)
      throw new Error(`${whereIs(access, lane)}: ${describeCode(tail.refusal)}`);
    if (passedMs > TIMEOUT_MS)
      throw new Error(
        `${whereIs(access, lane)} could not be read within ${TIMEOUT_MS / 1_000} s: its leader keeps changing, or a transaction of the lane stays open`,
      );
    await pauseMs(RETRY_PAUSE_MS);
  }
}

/**
 * Null when the read must be retried: the partition moved, or a transaction of the lane is not decided yet. The refusal
 * is the leader's answer to the fence write, such as too few in-sync replicas.
 */
async function tryRead(
  access: KafkaAccess,
  lane: LaneNotes,
  after: bigint,
  metadata: LedgerMetadata,
): Promise<LedgerTail | { readonly refusal: number } | null> {
  const leader = metadata.partitions[lane.partition]?.leader ?? null;
  if (leader === null) return null;
  try {
    const connection = await connectionTo(access.kafka, access.client, leader);
    const refusal = await writeFence(access, connection, lane);
    if (refusal !== CODE.NONE) return MOVED.has(refusal) ? null : { refusal };
    const read = new PartitionReading(access, connection, lane.partition, metadata.topicId);
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

/**
 * A broker that froze may not know yet that it is no longer the leader, and would return an old end of the log. So a
 * record is written first: that succeeds only if the replicas accept it as their leader.
 */
async function writeFence(
  { client, kafka, settings }: KafkaAccess,
  connection: KafkaConnection,
  { partition, prefix }: LaneNotes,
): Promise<number> {
  const { topic } = settings.ledger;
  const message = { topic, key: fenceKey(prefix), headers: {}, payload: Buffer.alloc(0) };
  const items = [{ index: 0, message, contentBytes: measure(message) }];
  const { version } = await apiOf(kafka, client, "Produce");
  const [answer] = await produce(kafka, connection, {
    ...{ version, transactionalId: null, producerId: -1n, producerEpoch: -1, compression: "none" },
    timeoutMs: Math.ceil(settings.requestTimeoutMs * 0.75),
    batches: [{ topic, partition, items, sequence: -1 }],
  });
  if (answer?.code === CODE.TOPIC_AUTHORIZATION_FAILED) throw refusedOnLedger(settings, ["Write"]);
  return answer?.code ?? CODE.UNKNOWN_SERVER_ERROR;
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

/** Reads one partition of the ledger from its leader. */
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

  /** Passes every record batch that starts in [from, to), in order. False when the log no longer reaches `to`. */
  async forward(from: bigint, to: bigint, take: (batch: FetchedBatch) => void): Promise<boolean> {
    for (let next = from; next < to; ) {
      const { throttleTimeMs, responses } = await this.#fetch(next);
      const found = responses[0]?.partitions[0];
      if (found === undefined) {
        // A throttled response is empty, which says nothing about the partition.
        await pauseMs(Math.max(throttleTimeMs, RETRY_PAUSE_MS));
        continue;
      }
      if (found.highWatermark < to) return false;
      const batches = found.records ?? [];
      // Compaction may have removed everything from here to the end.
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
