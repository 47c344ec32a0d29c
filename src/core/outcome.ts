import { codeOf } from "./errors.ts";

/**
 * How far an error reaches. An error of scope `event` spends the event's attempts; `topic` and `destination` open a
 * circuit instead, because a retry of this event alone would tell nothing new. Where others keep getting through, the
 * engine holds them against the event after all.
 */
export type Scope = "event" | "topic" | "destination";

/** What is known of a failure besides its reason. */
interface FailureDetail {
  /** A word of a small fixed set, for counting: the destination's name of the error. */
  readonly errorType?: string;
  /** What was thrown, where something was. */
  readonly error?: unknown;
}

export type Outcome =
  | { readonly kind: "delivered" }
  /** Not sent, because an earlier event of its key in the same batch failed. */
  | { readonly kind: "skipped" }
  | (FailureDetail & {
      readonly kind: "retry";
      readonly scope: Scope;
      readonly reason: string;
      readonly afterMs?: number;
      /** True when no event can be at fault: nothing was sent, or a part of the destination is down. */
      readonly isOutside?: boolean;
    })
  | (FailureDetail & { readonly kind: "rejected"; readonly scope: "event"; readonly reason: string });

type RetryDetail = FailureDetail & { scope?: Scope; afterMs?: number; isOutside?: boolean };

export type Failed = Exclude<Outcome, { readonly kind: "delivered" }>;

export const delivered: Outcome = { kind: "delivered" };
export const skipped: Outcome = { kind: "skipped" };

export function retry(reason: string, options: RetryDetail = {}): Failed {
  const { scope = "event", ...detail } = options;
  return { kind: "retry", scope, reason, ...detail };
}

/** No retry can cure it: too large, illegal name, invalid header. */
export function rejected(reason: string, detail: FailureDetail = {}): Failed {
  return { kind: "rejected", scope: "event", reason, ...detail };
}

/** A word of a small fixed set for a failure, to count by. */
export function errorTypeOf(failed: Exclude<Failed, { kind: "skipped" }>): string {
  const { kind, scope, reason, errorType, error } = failed;
  const known = errorType ?? codeOf(error, reason);
  if (known !== null) return known;
  if (kind === "rejected") return "REJECTED";
  return scope === "destination" ? "DESTINATION_UNREACHABLE" : "PUBLISH_FAILED";
}
