import type { Clock } from "../core/clock.ts";
import type { LambdaContext } from "../lambda/lambda-events.ts";

/** The context of one handler call that may take `invocationMs` from now on. */
export function lambdaContext(clock: Clock, invocationMs: number): LambdaContext {
  const endMs = clock.monotonicMs() + invocationMs;
  return { getRemainingTimeInMillis: () => Math.max(0, endMs - clock.monotonicMs()) };
}
