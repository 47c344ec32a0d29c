import type { Clock } from "../../core/clock.ts";
import type { LambdaContext } from "../lambda-events.ts";

/** For one call of a handler that may take so long, from now on. */
export function lambdaContext(clock: Clock, invocationMs: number): LambdaContext {
  const endMs = clock.monotonicMs() + invocationMs;
  return { getRemainingTimeInMillis: () => Math.max(0, endMs - clock.monotonicMs()) };
}
