import type { OnExhausted } from "../core/hold.ts";
import { type ExponentialOptions, exponential, RETRY_PRESETS, type RetryPolicy } from "../core/retry-policy.ts";

/** What a table is, by its columns. */
export type TablePreset = "flag" | "worker" | "intent" | "openoutbox";

/** What is set on purpose. It wins over whatever the table's preset says. */
export interface ExplicitPolicy {
  readonly pollIntervalMs: number | undefined;
  readonly batchSize: number | undefined;
  readonly onExhausted: OnExhausted | undefined;
  readonly retry: { readonly [Name in keyof ExponentialOptions]: ExponentialOptions[Name] | undefined };
}

export interface TablePolicy {
  readonly pollIntervalMs: number;
  readonly batchSize: number;
  readonly retry: RetryPolicy;
  readonly onExhausted: OnExhausted;
  /** A header of its own for the event's id, beside ours. */
  readonly idHeader: string | null;
}

const PRESETS: Readonly<Record<TablePreset, TablePolicy>> = {
  flag: { pollIntervalMs: 500, batchSize: 500, retry: RETRY_PRESETS.flag, onExhausted: "park", idHeader: null },
  worker: { pollIntervalMs: 5_000, batchSize: 100, retry: RETRY_PRESETS.worker, onExhausted: "park", idHeader: null },
  intent: { pollIntervalMs: 500, batchSize: 100, retry: RETRY_PRESETS.intent, onExhausted: "skip", idHeader: null },
  openoutbox: {
    pollIntervalMs: 500,
    batchSize: 100,
    retry: RETRY_PRESETS.openoutbox,
    onExhausted: "skip",
    idHeader: "X-Event-ID",
  },
};

export function policyOf(preset: TablePreset, explicit: ExplicitPolicy): TablePolicy {
  const own = PRESETS[preset];
  return {
    pollIntervalMs: explicit.pollIntervalMs ?? own.pollIntervalMs,
    batchSize: explicit.batchSize ?? own.batchSize,
    retry: retryOf(own.retry, explicit.retry),
    onExhausted: explicit.onExhausted ?? own.onExhausted,
    idHeader: own.idHeader,
  };
}

/** A listed schedule has no place for single numbers: one that is set makes it an exponential policy. */
function retryOf(own: RetryPolicy, explicit: ExplicitPolicy["retry"]): RetryPolicy {
  const set = Object.fromEntries(Object.entries(explicit).filter(([, value]) => value !== undefined));
  if (Object.keys(set).length === 0) return own;
  const base = own.kind === "exponential" ? own : RETRY_PRESETS.flag;
  const policy = { ...base, ...set } as Required<ExponentialOptions>;
  // Only one of the two was set: the other gives way.
  if (explicit.maxMs === undefined) policy.maxMs = Math.max(policy.maxMs, policy.initialMs);
  else policy.initialMs = Math.min(policy.initialMs, policy.maxMs);
  const { initialMs, factor, maxMs, jitter, attemptsMax } = policy;
  return exponential({ initialMs, factor, maxMs, jitter, attemptsMax });
}
