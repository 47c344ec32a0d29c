import type { Redis } from "ioredis";
import type { Clock, Random } from "../core/clock.ts";
import type { RequestContext } from "../ports/request-queue.ts";
import { RELEASE, RENEW } from "../requests/lease-scripts.ts";
import { executeLockKey } from "../requests/request-names.ts";

/** What a lock needs besides the request it protects. */
export interface LockContext {
  readonly redis: Redis;
  readonly context: RequestContext;
  readonly clock: Clock;
  readonly random: Random;
  readonly lockMs: number;
}

type Taking =
  | { readonly kind: "taken"; readonly lock: ExecuteLock }
  /** Another worker holds it; unless renewed it expires after this time. Negative: it never expires. */
  | { readonly kind: "busy"; readonly freeInMs: number };

/** Takes the lock of a request. Rejects when Redis does not answer. */
export async function takeLock(place: LockContext, tenant: string, requestId: string): Promise<Taking> {
  const lock = new ExecuteLock(place, tenant, requestId);
  const freeInMs = await lock.take();
  return freeInMs === null ? { kind: "taken", lock } : { kind: "busy", freeInMs };
}

/**
 * The right to execute a request. Its owner renews it at a third of its lifetime. When a renewal is not confirmed in
 * time, or Redis reports that the key is gone, the lock counts as lost and `signal` aborts. The lock only spares the
 * provider concurrent calls: the log's expected revision guarantees a single outcome.
 */
export class ExecuteLock {
  readonly #place: LockContext;
  readonly #key: string;
  readonly #fenceKey: string;
  readonly #owner: string;
  readonly #stopped = new AbortController();
  #lost = new AbortController();
  #token = "";
  #fence = 0;
  /**
   * On the monotonic clock. Counted from when the last confirmed renewal was sent, not answered, so that it never
   * outlasts the key.
   */
  #heldUntilMs = 0;
  #renewing: Promise<void> = Promise.resolve();

  constructor(place: LockContext, tenant: string, requestId: string) {
    this.#place = place;
    this.#key = executeLockKey(place.context, tenant, requestId);
    this.#fenceKey = `${place.context.namespace}:v1:{${tenant}}:execute-fence`;
    this.#owner = place.random.uuid();
  }

  /** Aborts when the lock is lost. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Rises with each lock within a tenant. A provider that sees a smaller fence than before can reject it as stale. */
  get fence(): number {
    return this.#fence;
  }

  /**
   * Null when the lock is ours now, else the time until it may be free; negative if it never expires. Also retakes a
   * lost lock.
   */
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

  /** Asks Redis whether the lock is still held. Rejects when Redis does not answer. */
  async isHeld(): Promise<boolean> {
    if (this.#lost.signal.aborted) return false;
    return await this.#renew();
  }

  /** Never rejects: a lock that cannot be released expires. */
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
    else this.#lost.abort(new Error("the execute lock is gone: it expired, or Redis lost its data"));
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

/**
 * KEYS lock, the tenant's fence. ARGV owner, ms. Returns { 1, fence } when the owner holds the lock now, else { 0, ms
 * until it may be free }. An owner that already holds it, because an answer was lost, gets it again. The fence rises
 * even after Redis lost its data, because it is never below the server's clock.
 */
const TAKE = `
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, -#ARGV[1]) ~= ARGV[1] then return { 0, tostring(redis.call('PTTL', KEYS[1])) } end
local now = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
local fence = string.format('%.0f', math.max(last + 1, now[1] * 1000 + math.floor(now[2] / 1000)))
redis.call('SET', KEYS[2], fence)
redis.call('SET', KEYS[1], fence .. ':' .. ARGV[1], 'PX', ARGV[2])
return { 1, fence }
`;
