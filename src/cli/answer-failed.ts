import { systemClock } from "../core/clock.ts";
import { reasonOf, stackOf } from "../core/errors.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Repeats } from "../telemetry/repeats.ts";

/** An answer of 500 is a fault of our own, and whoever runs the service has to hear of it too. */
export function answerFailed(logger: Logger): (at: string, error: unknown) => void {
  return (at, error) => {
    logger.error({ at, reason: reasonOf(error), stack: stackOf(error) }, "a request could not be answered");
  };
}

const CLOSED_TOLD_MS = 600_000;

/** Whoever set up the proxy has to learn why it gets no answers, and once is enough for a while. */
export function closedTo(logger: Logger): (why: string) => void {
  const repeats = new Repeats(systemClock, CLOSED_TOLD_MS);
  return (reason) => {
    const repeated = repeats.count(reason);
    const what = "API and console are off for a request that this user did not send; set ADMIN_TOKEN to use a proxy";
    if (repeated !== null) logger.warn({ reason, repeated }, what);
  };
}
