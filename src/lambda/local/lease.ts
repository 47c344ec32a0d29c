import type { Clock } from "../../core/clock.ts";
import type { CheckpointRow } from "./checkpoint-row.ts";
import type { Checkpoints, Grant } from "./checkpoints.ts";

/** Of a lease, after which its owner no longer relies on it. */
const RELIED_SHARE = 0.7;

/** A grant that is kept alive. Time is this process's own: no clock is compared with another's. */
export class Lease {
  readonly grant: Grant;
  readonly #checkpoints: Checkpoints;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #lost = new AbortController();
  #renewedMs: number;

  constructor(grant: Grant, takenMs: number, checkpoints: Checkpoints, clock: Clock, leaseMs: number) {
    this.grant = grant;
    this.#checkpoints = checkpoints;
    this.#clock = clock;
    this.#leaseMs = leaseMs;
    this.#renewedMs = takenMs;
  }

  /** Aborts once somebody else has it. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** A sign of life; throws when the table cannot be asked. False: it is lost. */
  async renew(): Promise<boolean> {
    return await this.#written(() => this.#checkpoints.renew(this.grant));
  }

  async save(progress: Parameters<Checkpoints["save"]>[1]): Promise<boolean> {
    return await this.#written(() => this.#checkpoints.save(this.grant, progress));
  }

  async release(): Promise<void> {
    if (!this.lost.aborted) await this.#checkpoints.release(this.grant);
  }

  /** To be asked before anything is sent. Throws when the table cannot be asked and the last sign is too old. */
  async isHeld(): Promise<boolean> {
    if (this.lost.aborted) return false;
    const isFresh = this.#clock.monotonicMs() - this.#renewedMs < this.#leaseMs * RELIED_SHARE;
    return isFresh || (await this.renew());
  }

  async #written(write: () => Promise<boolean>): Promise<boolean> {
    const sentMs = this.#clock.monotonicMs();
    const isMine = await write();
    if (isMine) this.#renewedMs = sentMs;
    else this.#lost.abort();
    return isMine;
  }
}

/** Finds rows whose owner gave no sign of life for a lease, measured from the first time that we saw it so. */
export class OwnerWatch {
  readonly #seen = new Map<string, { readonly mark: string; readonly sinceMs: number }>();
  readonly #clock: Clock;
  readonly #leaseMs: number;

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
  }

  /** Whether a row has no living owner. One that bears our own name and is none of our leases was taken in vain. */
  isFree({ beat, fence, owner, relay, shard }: CheckpointRow, self: string): boolean {
    if (owner === null || owner === self) return true;
    const key = JSON.stringify([relay, shard]);
    const mark = `${fence}/${beat}`;
    const nowMs = this.#clock.monotonicMs();
    const seen = this.#seen.get(key);
    if (seen?.mark === mark) return nowMs - seen.sinceMs > this.#leaseMs;
    this.#seen.set(key, { mark, sinceMs: nowMs });
    return false;
  }
}
