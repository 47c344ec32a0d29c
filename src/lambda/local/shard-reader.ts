import type { Clock } from "../../core/clock.ts";
import { isRelayError, reasonOf } from "../../core/errors.ts";
import type { StreamRecord } from "../lambda-events.ts";
import type { Change, ChangeStream } from "./change-stream.ts";
import { type Invocation, invocationOf, thrownInvocation } from "./invocation.ts";
import { lambdaRecord } from "./lambda-record.ts";
import type { Lease } from "./lease.ts";

interface ReaderOptions {
  readonly stream: ChangeStream;
  readonly shard: string;
  readonly lease: Lease;
  /** Everything up to here was done before. */
  readonly place: string | null;
  readonly clock: Clock;
  readonly timing: ReaderTiming;
  readonly batchSize: number;
  /** Whether a change is for this relay. Sees every change, in order. */
  readonly takes: (record: StreamRecord) => boolean;
  readonly invoke: (records: readonly StreamRecord[]) => Promise<unknown>;
  readonly told: ReaderEvents;
}

export interface ReaderTiming {
  /** Between two looks at a shard that has nothing new. */
  readonly pollMs: number;
  /** How long a batch waits for more once it has one record. */
  readonly windowMs: number;
  /** Pauses after failures double from the first to the last. */
  readonly pauseMs: { readonly first: number; readonly last: number };
}

export interface ReaderEvents {
  /** The stream or the checkpoints cannot be used; it is tried again. */
  broken(error: unknown): void;
  works(): void;
  /** A handler gave records back. They are tried again, and nothing behind them goes first. */
  failed(count: number, reason: string): void;
  /** Records were read, and the shard answered. */
  polled(): void;
}

/** `done`: read to its end. `lost`: another one reads it now. `halted`: nobody may go on before a recovery. */
type ReaderEnd = "done" | "lost" | "halted" | "stopped";

interface Gathered {
  readonly records: readonly StreamRecord[];
  /** The last that was read, for this relay or not. */
  readonly place: string | null;
  readonly isEnd: boolean;
}

const SAVE_EVERY_MS = 1_000;
/** An iterator that is too old as soon as it is given is no accident. */
const EXPIRED_MAX = 5;

/** Reads one shard for one relay, in order: nothing is passed over, and what failed is tried again before what follows. */
export class ShardReader {
  readonly #options: ReaderOptions;
  #iterator: string | null = null;
  #place: string | null;
  #savedPlace: string | null;
  #savedMs: number;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#place = options.place;
    this.#savedPlace = options.place;
    this.#savedMs = options.clock.monotonicMs();
  }

  /** Never rejects. What the handler has begun is waited for, also when the signal aborts. */
  async run(stop: AbortSignal): Promise<ReaderEnd> {
    const { clock, lease, timing, told } = this.#options;
    const signal = AbortSignal.any([stop, lease.lost]);
    let pauseMs = timing.pauseMs.first;
    while (!signal.aborted) {
      try {
        const end = await this.#round(signal);
        if (end !== null) return end;
        pauseMs = timing.pauseMs.first;
        told.works();
      } catch (error) {
        told.broken(error);
        if (isRelayError(error, "STREAM_TRIMMED") && (await this.#halt(error))) return "halted";
        this.#iterator = null;
        await clock.sleep(pauseMs, signal);
        pauseMs = Math.min(timing.pauseMs.last, pauseMs * 2);
      }
    }
    return lease.lost.aborted ? "lost" : "stopped";
  }

  async #round(signal: AbortSignal): Promise<ReaderEnd | null> {
    const { clock, lease, timing, told } = this.#options;
    const gathered = await this.#gather(signal);
    told.polled();
    if (!(await this.#deliver(gathered.records, signal))) return lease.lost.aborted ? "lost" : null;
    this.#place = gathered.place;
    if (gathered.isEnd) return (await lease.save({ place: this.#place, isDone: true })) ? "done" : "lost";
    if (!(await this.#save(gathered.records.length > 0))) return "lost";
    if (gathered.records.length === 0) await clock.sleep(timing.pollMs, signal);
    return null;
  }

  /** Up to a batch, or what comes within the window, or one page of what others take. */
  async #gather(signal: AbortSignal): Promise<Gathered> {
    const { batchSize, clock, timing } = this.#options;
    const records: StreamRecord[] = [];
    let place = this.#place;
    let firstMs = 0;
    for (;;) {
      const page = await this.#page(place);
      for (const record of page.records) {
        place = record.dynamodb?.SequenceNumber ?? place;
        const taken = this.#taken(record);
        if (taken !== null) records.push(taken);
      }
      if (records.length > 0 && firstMs === 0) firstMs = clock.monotonicMs();
      const isOver = records.length >= batchSize || clock.monotonicMs() - firstMs >= timing.windowMs;
      if (page.next === null || records.length === 0 || isOver || signal.aborted) {
        return { records, place, isEnd: page.next === null };
      }
      await clock.sleep(Math.min(timing.pollMs, timing.windowMs / 2), signal);
    }
  }

  async #page(place: string | null): Promise<{ records: readonly Change[]; next: string | null }> {
    const { shard, stream } = this.#options;
    for (let tries = 0; tries < EXPIRED_MAX; tries += 1) {
      this.#iterator ??= await stream.iteratorAfter(shard, place);
      const page = await stream.page(this.#iterator);
      this.#iterator = page?.next ?? null;
      if (page !== null) return page;
    }
    throw new Error(`the iterators of the shard ${shard} are expired as soon as they are given`);
  }

  #taken(record: Change): StreamRecord | null {
    const { stream, takes } = this.#options;
    const asLambda = lambdaRecord(record, stream.arn);
    return takes(asLambda) ? asLambda : null;
  }

  /** False when it was stopped before all were done. The place then is that of the last one before the failed ones. */
  async #deliver(records: readonly StreamRecord[], signal: AbortSignal): Promise<boolean> {
    const { batchSize, clock, lease, timing } = this.#options;
    let rest = records;
    let pauseMs = timing.pauseMs.first;
    while (rest.length > 0) {
      if (signal.aborted || !(await lease.isHeld())) return this.#givenUp();
      const batch = rest.slice(0, batchSize);
      const { failedFrom, reason } = await this.#invoke(batch);
      const count = failedFrom ?? batch.length;
      this.#place = batch[count - 1]?.dynamodb?.SequenceNumber ?? this.#place;
      rest = rest.slice(count);
      if (count > 0) pauseMs = timing.pauseMs.first;
      if (failedFrom === null) continue;
      this.#options.told.failed(batch.length - failedFrom, reason ?? "the handler gave them back");
      await this.#save(true);
      await clock.sleep(pauseMs, signal);
      pauseMs = Math.min(timing.pauseMs.last, pauseMs * 2);
    }
    return true;
  }

  /** What was read and not delivered is read again, from the place that is done. */
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

  /** Changes for others are noted from time to time only. False: the lease is lost. */
  async #save(isDue: boolean): Promise<boolean> {
    const { clock, lease } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#place === this.#savedPlace || (!isDue && nowMs - this.#savedMs < SAVE_EVERY_MS)) return true;
    const place = this.#place;
    if (!(await lease.save({ place }))) return false;
    this.#savedPlace = place;
    this.#savedMs = nowMs;
    return true;
  }

  /** Written down, so that no other runner goes on either. False when even that cannot be written yet. */
  async #halt(error: unknown): Promise<boolean> {
    return await this.#options.lease.save({ place: this.#place, lost: reasonOf(error, 500) }).then(
      () => true,
      () => false,
    );
  }
}
