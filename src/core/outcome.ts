import { codeOf } from "./errors.ts";

/**
 * How far an error reaches. An error of scope `event` spends an attempt of the event. An error of scope `topic` or
 * `destination` opens a circuit instead, because the next event would fail in the same way. When other events are
 * delivered in the meantime, the engine attributes the error to the event after all.
 */
export type FailureScope = "event" | "topic" | "destination";

/** What is known about a failure besides its reason. */
export interface FailureDetail {
  /** The destination's name of the error: one of a small fixed set of words, for metrics. */
  readonly errorType?: string;
  /** The thrown error, if any. */
  readonly error?: unknown;
  /**
   * The reason without anything about this one event. Circuits use it, because everyone can see them and because they
   * recognise equal failures by their reason.
   */
  readonly commonReason?: string;
}

/** The result of publishing one event. */
export type Outcome =
  | { readonly kind: "delivered" }
  /** Not sent, because an earlier event of its key in the same batch failed. */
  | { readonly kind: "skipped" }
  | (FailureDetail & {
      readonly kind: "retry";
      readonly scope: FailureScope;
      readonly reason: string;
      readonly afterMs?: number;
      /** True when no event can be at fault: nothing was sent, or part of the destination is down. */
      readonly isOutside?: boolean;
    })
  | (FailureDetail & { readonly kind: "rejected"; readonly scope: "event"; readonly reason: string });

/** What is known about a failure that a retry may cure. */
export interface RetryDetail extends FailureDetail {
  readonly scope?: FailureScope;
  /** The earliest time of the next attempt, from now. */
  readonly afterMs?: number;
  /** True when no event can be at fault: nothing was sent, or part of the destination is down. */
  readonly isOutside?: boolean;
}

/** Any outcome but `delivered`. */
export type Failed = Exclude<Outcome, { readonly kind: "delivered" }>;

/** The destination acknowledged the event. */
export const delivered: Outcome = { kind: "delivered" };
/** The event was not sent, because an earlier event of its key failed. */
export const skipped: Outcome = { kind: "skipped" };

/** A failure that a retry may cure. The scope is `event` unless the options say otherwise. */
export function retry(reason: string, options: RetryDetail = {}): Failed {
  const { scope = "event", ...detail } = options;
  return { kind: "retry", scope, reason, ...detail };
}

/** A failure that no retry can cure, such as a message that is too large: the event becomes a dead letter at once. */
export function rejected(reason: string, detail: FailureDetail = {}): Failed {
  return { kind: "rejected", scope: "event", reason, ...detail };
}

/** The outcomes that a publisher reports. */
export interface PublishOutcomes {
  /** The destination acknowledged the event. */
  readonly delivered: Outcome;
  /** The event was not sent, because an earlier event of its key failed. */
  readonly skipped: Outcome;
  /** A failure that a retry may cure. The scope is `event` unless the options say otherwise. */
  retry(reason: string, options?: RetryDetail): Outcome;
  /** A failure that no retry can cure, such as a message that is too large: the event becomes a dead letter at once. */
  rejected(reason: string, detail?: FailureDetail): Outcome;
}

/** `publishOutcomes.delivered`, `publishOutcomes.retry("busy", { scope: "destination" })`. */
export const publishOutcomes: PublishOutcomes = { delivered, skipped, retry, rejected };

/** The error type of a failure for metrics: one of a small fixed set of words. */
export function errorTypeOf(failed: Exclude<Failed, { kind: "skipped" }>): string {
  const { kind, scope, reason, errorType, error } = failed;
  const known = errorType ?? codeOf(error, reason);
  if (known !== null) return known;
  if (kind === "rejected") return "REJECTED";
  return scope === "destination" ? "DESTINATION_UNREACHABLE" : "PUBLISH_FAILED";
}
