import type { OnExhausted } from "../core/hold.ts";
import type { Failed } from "../core/outcome.ts";
import { delayAfter, exponential, longestDelayMs, type RetryPolicy } from "../core/retry-policy.ts";
import type { FailureNext } from "../ports/queue-store.ts";

export const DEFAULT_RETRY = exponential();

export interface FailurePolicy {
  readonly retry: RetryPolicy;
  readonly onExhausted: OnExhausted;
}

/** A count that no event reaches, and that fits an integer column. */
const NEVER = 2_147_483_647;

/** The attempts after which an event of this destination is exhausted, the most generous of its routes. */
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

/** What becomes of an event that failed for its own sake for the n-th time. */
export function nextAfterFailure(policy: FailurePolicy, failed: Failed, attempts: number, draw: number): FailureNext {
  const dead: FailureNext = { kind: "dead", parks: policy.onExhausted !== "skip" };
  if (failed.kind === "rejected") return dead;
  const delayMs = delayAfter(policy.retry, attempts, draw);
  const leastMs = failed.kind === "retry" ? (failed.afterMs ?? 0) : 0;
  if (delayMs !== "exhausted") return { kind: "retry", delayMs: Math.max(leastMs, delayMs) };
  if (policy.onExhausted !== "block") return dead;
  return { kind: "retry", delayMs: Math.max(leastMs, longestDelayMs(policy.retry)) };
}
