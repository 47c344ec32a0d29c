import { Backoff, type PauseRange } from "../core/backoff.ts";
import type { Clock } from "../core/clock.ts";
import { isRelayError, reasonOf } from "../core/errors.ts";
import type { StreamRecord } from "../lambda/lambda-events.ts";
import type { Change, ChangeStream } from "./change-stream.ts";
import { type Invocation, invocationOf, thrownInvocation } from "./invocation.ts";
import { lambdaRecord } from "./lambda-record.ts";
import type { Lease } from "./lease.ts";

interface ReaderOptions {
  readonly stream: ChangeStream;
  readonly shard: string;
  readonly lease: Lease;
  /** Everything up to here is already relayed. */
  readonly position: string | null;
  readonly clock: Clock;
  readonly timing: ReaderTiming;
  readonly batchSize: number;
  /** Whether a change is for this relay. Called for every change, in order. */
  readonly takes: (record: StreamRecord) => boolean;
  readonly invoke: (records: readonly StreamRecord[]) => Promise<unknown>;
  readonly events: ReaderEvents;
}

/** The timing of a shard reader. */
export interface ReaderTiming {
  /** Between two reads of a shard that has nothing new. */
  readonly pollMs: number;
  /** How long a batch with one record waits for more. */
  readonly windowMs: number;
  /** The pauses after failures; they double. */
  readonly pauseMs: PauseRange;
}

/** Callbacks of a shard reader. */
export interface ReaderEvents {
  /** The stream or the checkpoints cannot be used; the reader retries. */
  broken(error: unknown): void;
  works(): void;
  /** A handler returned records as failed. They are retried before any later record. */
  failed(count: number, reason: string): void;
  /** The shard answered. */
  polled(): void;
}

/** `done`: read to its end. `lost`: another runner reads it now. `halted`: no runner may continue before a recovery. */
type ReaderEnd = "done" | "lost" | "halted" | "stopped";

interface Gathered {
  readonly records: readonly StreamRecord[];
  /** The last record read, whether for this relay or not. */
  readonly position: string | null;
  readonly isEnd: boolean;
}

const SAVE_EVERY_MS = 1_000;
/** This many unusable iterators in a row are an error. */
const ITERATORS_MAX = 5;

/** Reads one shard for one relay, in order. It skips nothing: failed records are retried before the next ones. */
export class ShardReader {
  readonly #options: ReaderOptions;
  #iterator: string | null = null;
  #position: string | null;
  #savedPosition: string | null;
  #savedMs: number;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#position = options.position;
    this.#savedPosition = options.position;
    this.#savedMs = options.clock.monotonicMs();
  }

  /** Never rejects. Waits for a running handler call, also when the signal aborts. */
  async run(stop: AbortSignal): Promise<ReaderEnd> {
    const { clock, events, lease, timing } = this.#options;
    const signal = AbortSignal.any([stop, lease.lost]);
    const backoff = new Backoff(timing.pauseMs);
    while (!signal.aborted) {
      try {
        const end = await this.#round(signal);
        if (end !== null) return end;
        backoff.reset();
        events.works();
      } catch (error) {
        events.broken(error);
        if (isRelayError(error, "STREAM_TRIMMED") && (await this.#halt(error))) return "halted";
        this.#iterator = null;
        await clock.sleep(backoff.nextMs(), signal);
      }
    }
    return lease.lost.aborted ? "lost" : "stopped";
  }

  async #round(signal: AbortSignal): Promise<ReaderEnd | null> {
    const { clock, events, lease, timing } = this.#options;
    const gathered = await this.#gather(signal);
    events.polled();
    if (!(await this.#deliver(gathered.records, signal))) return lease.lost.aborted ? "lost" : null;
    this.#position = gathered.position;
    if (gathered.isEnd) return (await lease.save({ position: this.#position, isDone: true })) ? "done" : "lost";
    if (!(await this.#save(gathered.records.length > 0))) return "lost";
    if (gathered.records.length === 0) await clock.sleep(timing.pollMs, signal);
    return null;
  }

  /** Collects a full batch, the records that arrive within the window, or one page without a record for this relay. */
  async #gather(signal: AbortSignal): Promise<Gathered> {
    const { batchSize, clock, timing } = this.#options;
    const records: StreamRecord[] = [];
    let position = this.#position;
    let firstMs = 0;
    for (;;) {
      const page = await this.#page(position, signal);
      for (const record of page.records) {
        position = record.dynamodb?.SequenceNumber ?? position;
        const taken = this.#taken(record);
        if (taken !== null) records.push(taken);
      }
      if (records.length > 0 && firstMs === 0) firstMs = clock.monotonicMs();
      const isOver = records.length >= batchSize || clock.monotonicMs() - firstMs >= timing.windowMs;
      if (page.next === null || records.length === 0 || isOver || signal.aborted) {
        return { records, position, isEnd: page.next === null };
      }
      await clock.sleep(Math.min(timing.pollMs, timing.windowMs / 2), signal);
    }
  }

  async #page(
    position: string | null,
    signal: AbortSignal,
  ): Promise<{ records: readonly Change[]; next: string | null }> {
    const { clock, shard, stream, timing } = this.#options;
    let refusal: unknown;
    for (let tries = 0; tries < ITERATORS_MAX; tries += 1) {
      this.#iterator ??= await stream.iteratorAfter(shard, position);
      const page = await stream.page(this.#iterator).catch((error: unknown) => {
        // DynamoDB Local reports the end of an empty shard as trimmed once another table was written to, even between
        // the request for the iterator and its use. Records are missing only if several new iterators fail, too.
        if (!isRelayError(error, "STREAM_TRIMMED")) throw error;
        refusal = error;
        return null;
      });
      this.#iterator = page?.next ?? null;
      if (page !== null) return page;
      if (tries > 0) await clock.sleep(timing.pauseMs.firstMs, signal);
    }
    throw refusal ?? new Error(`each new iterator of the shard ${shard} has already expired`);
  }

  #taken(record: Change): StreamRecord | null {
    const { stream, takes } = this.#options;
    const asLambda = lambdaRecord(record, stream.arn);
    return takes(asLambda) ? asLambda : null;
  }

  /**
   * False when it stopped before all records were relayed. The position is then that of the last record before the
   * failed ones.
   */
  async #deliver(records: readonly StreamRecord[], signal: AbortSignal): Promise<boolean> {
    const { batchSize, clock, lease, timing } = this.#options;
    let rest = records;
    const backoff = new Backoff(timing.pauseMs);
    while (rest.length > 0) {
      if (signal.aborted || !(await lease.isHeld())) return this.#givenUp();
      const batch = rest.slice(0, batchSize);
      const { failedFrom, reason } = await this.#invoke(batch);
      const count = failedFrom ?? batch.length;
      this.#position = batch[count - 1]?.dynamodb?.SequenceNumber ?? this.#position;
      rest = rest.slice(count);
      if (count > 0) backoff.reset();
      if (failedFrom === null) continue;
      this.#options.events.failed(batch.length - failedFrom, reason ?? "the handler returned them as failed");
      await this.#save(true);
      await clock.sleep(backoff.nextMs(), signal);
    }
    return true;
  }

  /** Records that were read but not relayed are read again, from the last finished position. */
  #givenUp(): false {
    this.#iterator = null;
    return false;
  }

  async #invoke(batch: readonly StreamRecord[]): Promise<Invocation> {
    const sequenceNumbers = batch.map(({ dynamodb }) => dynamodb?.SequenceNumber ?? "");
    try {
      return invocationOf(sequenceNumbers, await this.#options.invoke(batch));
    } catch (error) {
      return thrownInvocation(error);
    }
  }

  /**
   * Saves the position at once when `isDue`; for changes of other relays only now and then. False: the lease is lost.
   */
  async #save(isDue: boolean): Promise<boolean> {
    const { clock, lease } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#position === this.#savedPosition || (!isDue && nowMs - this.#savedMs < SAVE_EVERY_MS)) return true;
    const position = this.#position;
    if (!(await lease.save({ position }))) return false;
    this.#savedPosition = position;
    this.#savedMs = nowMs;
    return true;
  }

  /** Records the halt, so that no other runner continues either. False when that cannot be written yet. */
  async #halt(error: unknown): Promise<boolean> {
    return await this.#options.lease.save({ position: this.#position, lost: reasonOf(error, 500) }).then(
      () => true,
      () => false,
    );
  }
}
