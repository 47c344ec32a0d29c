/**
 * How far an error reaches. Only an error of scope `event` spends the event's attempts; `topic` and `destination`
 * open a circuit instead, because a retry of this event alone would tell nothing new.
 */
export type Scope = "event" | "topic" | "destination";

export type Outcome =
  | { readonly kind: "delivered" }
  /** Not sent, because an earlier event of its key in the same batch failed. */
  | { readonly kind: "skipped" }
  | { readonly kind: "retry"; readonly scope: Scope; readonly reason: string; readonly afterMs?: number }
  | { readonly kind: "rejected"; readonly scope: "event"; readonly reason: string };

export type Failed = Exclude<Outcome, { readonly kind: "delivered" }>;

export const delivered: Outcome = { kind: "delivered" };
export const skipped: Outcome = { kind: "skipped" };

export function retry(reason: string, options: { scope?: Scope; afterMs?: number } = {}): Failed {
  const { scope = "event", afterMs } = options;
  return afterMs === undefined ? { kind: "retry", scope, reason } : { kind: "retry", scope, reason, afterMs };
}

/** No retry can cure it: too large, illegal name, invalid header. */
export function rejected(reason: string): Failed {
  return { kind: "rejected", scope: "event", reason };
}
