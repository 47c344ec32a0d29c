import type { Clock } from "../core/clock.ts";
import { reasonOf } from "../core/errors.ts";
import type { LambdaContext } from "../lambda/lambda-events.ts";

/** The result of one handler call: the index of the first record to retry, or null when all are done. */
export interface Invocation {
  readonly failedFrom: number | null;
  /** The reason when the whole call failed or its response is invalid. */
  readonly reason: string | null;
}

/** Reads a handler's response as an event source mapping does: an invalid response fails the whole batch. */
export function invocationOf(sequenceNumbers: readonly string[], answer: unknown): Invocation {
  const failures = (answer as { readonly batchItemFailures?: unknown } | null | undefined)?.batchItemFailures;
  if (failures === undefined || failures === null) return { failedFrom: null, reason: null };
  if (!Array.isArray(failures)) return { failedFrom: 0, reason: "batchItemFailures is not a list" };
  if (failures.length === 0) return { failedFrom: null, reason: null };
  const positions = failures.map((failure) =>
    sequenceNumbers.indexOf(String((failure as { readonly itemIdentifier?: unknown } | null)?.itemIdentifier)),
  );
  if (positions.includes(-1))
    return { failedFrom: 0, reason: "batchItemFailures names a record that was not in the batch" };
  return { failedFrom: Math.min(...positions), reason: null };
}

/** The result of a call that threw. */
export function thrownInvocation(error: unknown): Invocation {
  return { failedFrom: 0, reason: `the handler threw: ${reasonOf(error)}` };
}

/** The context of one handler call that may take `invocationMs` from now on. */
export function lambdaContext(clock: Clock, invocationMs: number): LambdaContext {
  const endMs = clock.monotonicMs() + invocationMs;
  return { getRemainingTimeInMillis: () => Math.max(0, endMs - clock.monotonicMs()) };
}
