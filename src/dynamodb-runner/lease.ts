import type { Clock } from "../core/clock.ts";
import type { CheckpointRow, Checkpoints, ShardGrant } from "./checkpoints.ts";

/** The share of a lease after which its owner renews before it relies on it. */
const RELIED_SHARE = 0.7;

/** A grant that is renewed. It uses only this process's monotonic clock: clocks of two machines are never compared. */
export class Lease {
  readonly grant: ShardGrant;
  readonly #checkpoints: Checkpoints;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #lost = new AbortController();
  #renewedMs: number;

  constructor(grant: ShardGrant, takenMs: number, checkpoints: Checkpoints, clock: Clock, leaseMs: number) {
    this.grant = grant;
    this.#checkpoints = checkpoints;
    this.#clock = clock;
    this.#leaseMs = leaseMs;
    this.#renewedMs = takenMs;
  }

  /** Aborts once another runner has taken it. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Sends a heartbeat; throws when the table cannot be reached. False: the lease is lost. */
  async renew(): Promise<boolean> {
    return await this.#written(() => this.#checkpoints.renew(this.grant));
  }

  async save(progress: Parameters<Checkpoints["save"]>[1]): Promise<boolean> {
    return await this.#written(() => this.#checkpoints.save(this.grant, progress));
  }

  async release(): Promise<void> {
    if (!this.lost.aborted) await this.#checkpoints.release(this.grant);
  }

  /** Call before every send. Throws when the table cannot be reached and the last renewal is too old. */
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

/**
 * Finds rows whose owner sent no heartbeat for the time of a lease, measured from when this process first saw the
 * current beat.
 */
export class OwnerWatch {
  readonly #seen = new Map<string, { readonly mark: string; readonly sinceMs: number }>();
  readonly #clock: Clock;
  readonly #leaseMs: number;

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
  }

  /**
   * Whether a row has no live owner. A row with our own name that is not one of our leases was taken without our
   * getting the answer.
   */
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
