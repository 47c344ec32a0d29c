import type { OnExhausted } from "../core/hold.ts";
import type { Failed } from "../core/outcome.ts";
import { delayAfter, exponentialRetry, longestDelayMs, type RetryPolicy } from "../core/retry-policy.ts";
import type { FailureNext } from "../ports/queue-store.ts";

/** The retry policy of a route without one. */
export const DEFAULT_RETRY = exponentialRetry();

/** How often a failing event is retried, and what happens after that. */
export interface FailurePolicy {
  readonly retry: RetryPolicy;
  readonly onExhausted: OnExhausted;
}

/** A number of attempts that no event reaches, and that fits an integer column. */
const NEVER = 2_147_483_647;

/** The attempts after which any event of this destination is exhausted: the largest number of all its routes. */
export function attemptsMaxOf(
  routes: readonly { readonly destination: string; readonly retry?: RetryPolicy; readonly onExhausted?: OnExhausted }[],
  destination: string,
): number {
  const mine = routes.filter((route) => route.destination === destination);
  return Math.max(
    ...mine.map(({ retry, onExhausted }) => (onExhausted === "block" ? NEVER : attemptsOf(retry ?? DEFAULT_RETRY))),
  );
}

function attemptsOf(retry: RetryPolicy): number {
  return retry.kind === "schedule" ? retry.delaysMs.length + 1 : retry.attemptsMax;
}

/** What follows the n-th failure that counts against the event. */
export function nextAfterFailure(policy: FailurePolicy, failed: Failed, attempts: number, draw: number): FailureNext {
  const dead: FailureNext = { kind: "dead", parks: policy.onExhausted !== "skip" };
  if (failed.kind === "rejected") return dead;
  const delayMs = delayAfter(policy.retry, attempts, draw);
  const leastMs = failed.kind === "retry" ? (failed.afterMs ?? 0) : 0;
  if (delayMs !== "exhausted") return { kind: "retry", delayMs: Math.max(leastMs, delayMs) };
  if (policy.onExhausted !== "block") return dead;
  return { kind: "retry", delayMs: Math.max(leastMs, longestDelayMs(policy.retry)) };
}
