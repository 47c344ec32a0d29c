import { systemClock } from "../core/clock.ts";
import { reasonOf, stackOf } from "../core/errors.ts";
import type { Logger } from "../telemetry/logs/logger.ts";
import { RepeatLimiter } from "../telemetry/logs/repeat-limiter.ts";

/** Logs a request that ended with status 500: the fault is ours, and the operator must see it too. */
export function logFailedRequests(logger: Logger): (at: string, error: unknown) => void {
  return (at, error) => {
    logger.error({ at, reason: reasonOf(error), stack: stackOf(error) }, "a request failed with an internal error");
  };
}

const CLOSED_LOGGED_EVERY_MS = 600_000;

/**
 * Logs why requests of other users are refused, at most every ten minutes: the person who set up a proxy needs it once.
 */
export function logRefusedRequests(logger: Logger): (why: string) => void {
  const repeats = new RepeatLimiter(systemClock, CLOSED_LOGGED_EVERY_MS);
  return (reason) => {
    const repeated = repeats.count(reason);
    const what = "API and console are off for requests of other users; set ADMIN_TOKEN to use them behind a proxy";
    if (repeated !== null) logger.warn({ reason, repeated }, what);
  };
}
