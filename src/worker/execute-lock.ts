import type { Redis } from "ioredis";
import type { Clock, Random } from "../core/clock.ts";
import { RELEASE, RENEW } from "../requests/lease-scripts.ts";
import { executeLockKey, type RequestContext } from "../requests/request-names.ts";
import { TAKE } from "./lock-scripts.ts";

export interface LockPlace {
  readonly redis: Redis;
  readonly context: RequestContext;
  readonly clock: Clock;
  readonly random: Random;
  readonly lockMs: number;
}

type Taking =
  | { readonly kind: "taken"; readonly lock: ExecuteLock }
  /** Somebody else has it; unless renewed it is free after so long. Negative: it never expires. */
  | { readonly kind: "busy"; readonly freeInMs: number };

/** Rejects when Redis does not answer. */
export async function takeLock(place: LockPlace, tenant: string, requestId: string): Promise<Taking> {
  const lock = new ExecuteLock(place, tenant, requestId);
  const freeInMs = await lock.take();
  return freeInMs === null ? { kind: "taken", lock } : { kind: "busy", freeInMs };
}

/**
 * The right to work on a request. It is renewed at a third of its life by whoever has its token; when that is not
 * confirmed in time, or Redis says that it is gone, it counts as lost and `signal` aborts. A lock is a courtesy to the
 * provider: that there is one outcome is the business of the log's expected revision.
 */
export class ExecuteLock {
  readonly #place: LockPlace;
  readonly #key: string;
  readonly #fenceKey: string;
  readonly #owner: string;
  readonly #stopped = new AbortController();
  #lost = new AbortController();
  #token = "";
  #fence = 0;
  /** By the monotonic clock, counted from the moment at which the last confirmed renewal was sent. */
  #heldUntilMs = 0;
  #renewing: Promise<void> = Promise.resolve();

  constructor(place: LockPlace, tenant: string, requestId: string) {
    this.#place = place;
    this.#key = executeLockKey(place.context, tenant, requestId);
    this.#fenceKey = `${place.context.namespace}:v1:{${tenant}}:execute-fence`;
    this.#owner = place.random.uuid();
  }

  /** Aborts when the lock is lost. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Rises from lock to lock within a tenant: whoever sees a smaller one than before sees a straggler. */
  get fence(): number {
    return this.#fence;
  }

  /** Null when it is ours now, else after how long it can be free, negative: never. Also takes again one that was lost. */
  async take(): Promise<number | null> {
    const { clock, lockMs, redis } = this.#place;
    await this.#renewing;
    const sentMs = clock.monotonicMs();
    const answer = await redis.eval(TAKE, 2, this.#key, this.#fenceKey, this.#owner, lockMs);
    const [isOurs, said] = answer as [number, string];
    if (isOurs === 0) return Number(said);
    this.#token = `${said}:${this.#owner}`;
    this.#fence = Number(said);
    this.#heldUntilMs = sentMs + lockMs;
    if (this.#lost.signal.aborted) this.#lost = new AbortController();
    this.#renewing = this.#keepRenewing();
    return null;
  }

  /** Whether Redis itself says so, now. Rejects when it does not answer. */
  async isHeld(): Promise<boolean> {
    if (this.#lost.signal.aborted) return false;
    return await this.#renew();
  }

  /** Never rejects: what cannot be released goes by itself. */
  async release(): Promise<void> {
    this.#stopped.abort();
    await this.#renewing;
    await this.#place.redis.eval(RELEASE, 1, this.#key, this.#token).catch(() => {});
  }

  async #renew(): Promise<boolean> {
    const { clock, lockMs, redis } = this.#place;
    const sentMs = clock.monotonicMs();
    const isHeld = (await redis.eval(RENEW, 1, this.#key, this.#token, lockMs)) === 1;
    if (isHeld) this.#heldUntilMs = Math.max(this.#heldUntilMs, sentMs + lockMs);
    else this.#lost.abort(new Error("the execute lock is gone: it expired, or Redis lost its memory"));
    return isHeld;
  }

  async #keepRenewing(): Promise<void> {
    const { clock, lockMs } = this.#place;
    const lost = this.#lost.signal;
    const ended = AbortSignal.any([this.#stopped.signal, lost]);
    let waitMs = lockMs / 3;
    for (;;) {
      await clock.sleep(Math.min(waitMs, Math.max(0, this.#heldUntilMs - clock.monotonicMs())), ended);
      if (ended.aborted) return;
      try {
        await this.#renew();
        waitMs = lockMs / 3;
      } catch {
        waitMs = lockMs / 20;
      }
      if (clock.monotonicMs() < this.#heldUntilMs) continue;
      this.#lost.abort(new Error("the execute lock was not renewed in time: Redis did not answer"));
    }
  }
}
