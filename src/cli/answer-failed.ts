import { reasonOf, stackOf } from "../core/errors.ts";
import type { Logger } from "../telemetry/logger.ts";

/** An answer of 500 is a fault of our own, and whoever runs the service has to hear of it too. */
export function answerFailed(logger: Logger): (at: string, error: unknown) => void {
  return (at, error) => {
    logger.error({ at, reason: reasonOf(error), stack: stackOf(error) }, "a request could not be answered");
  };
}
