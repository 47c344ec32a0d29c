import { reasonOf } from "../../core/errors.ts";

/** What one call of a handler came to: from this record on it has to be tried again; null: all is done. */
export interface Invocation {
  readonly failedFrom: number | null;
  /** Why, where the handler as a whole failed or answered nonsense. */
  readonly reason: string | null;
}

/** Reads a handler's answer as the event source mapping does: what it cannot understand is a failure of all. */
export function invocationOf(sequenceNumbers: readonly string[], answer: unknown): Invocation {
  const failures = (answer as { readonly batchItemFailures?: unknown } | null | undefined)?.batchItemFailures;
  if (failures === undefined || failures === null) return { failedFrom: null, reason: null };
  if (!Array.isArray(failures)) return { failedFrom: 0, reason: "batchItemFailures is no list" };
  if (failures.length === 0) return { failedFrom: null, reason: null };
  const places = failures.map((failure) =>
    sequenceNumbers.indexOf(String((failure as { readonly itemIdentifier?: unknown } | null)?.itemIdentifier)),
  );
  if (places.includes(-1))
    return { failedFrom: 0, reason: "batchItemFailures names a record that was not in the batch" };
  return { failedFrom: Math.min(...places), reason: null };
}

export function thrownInvocation(error: unknown): Invocation {
  return { failedFrom: 0, reason: `the handler threw: ${reasonOf(error)}` };
}
