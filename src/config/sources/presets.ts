import type { OnExhausted } from "../../core/hold.ts";
import {
  type ExponentialRetryOptions,
  exponentialRetry,
  RETRY_PRESETS,
  type RetryPolicy,
  scheduledRetry,
} from "../../core/retry-policy.ts";

import type { LogPreset } from "../../sources/postgres/log/log-preset.ts";
import type { SettingName } from "../settings/settings.ts";

/** The kind of a table, detected by its columns or configured. */
export type TablePreset = "flag" | "worker" | "intent" | "openoutbox" | LogPreset;

/** Explicit settings, which override the table's preset. */
export interface ExplicitPolicy {
  readonly pollIntervalMs: number | undefined;
  readonly onExhausted: OnExhausted | undefined;
  readonly retry: { readonly [Name in keyof ExponentialRetryOptions]?: ExponentialRetryOptions[Name] | undefined };
  /** Listed delays in milliseconds. They replace computed ones. */
  readonly schedule: readonly number[] | undefined;
}

/** How events of a table are polled, batched and retried. */
export interface TablePolicy {
  readonly pollIntervalMs: number;
  /** Where the destination sets none. */
  readonly batchSize: number;
  readonly retry: RetryPolicy;
  readonly onExhausted: OnExhausted;
  /** An additional header for the event's id. */
  readonly idHeader: string | null;
}

/** Larger batches, because settling a log costs the same for any number of events. */
const LOG: TablePolicy = {
  pollIntervalMs: 500,
  batchSize: 1_000,
  retry: RETRY_PRESETS.flag,
  onExhausted: "park",
  idHeader: null,
};

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
  managed: LOG,
  tail: LOG,
  wal: LOG,
};

/** Whether tables of this kind are logs. */
export function isLog(preset: TablePreset): preset is LogPreset {
  return preset === "managed" || preset === "tail" || preset === "wal";
}

/** The policy of a table: its preset with the explicit settings. */
export function policyOf(preset: TablePreset, explicit: ExplicitPolicy): TablePolicy {
  const own = PRESETS[preset];
  return {
    pollIntervalMs: explicit.pollIntervalMs ?? own.pollIntervalMs,
    batchSize: own.batchSize,
    retry: explicit.schedule === undefined ? retryOf(own.retry, explicit.retry) : scheduledRetry(explicit.schedule),
    onExhausted: explicit.onExhausted ?? own.onExhausted,
    idHeader: own.idHeader,
  };
}

/** The policy for the events of one route, which can override settings. */
export function routePolicyOf(
  preset: TablePreset,
  explicit: ExplicitPolicy,
  own: Partial<Pick<ExplicitPolicy, "retry" | "schedule" | "onExhausted">>,
): TablePolicy {
  const { onExhausted = explicit.onExhausted, retry, schedule: listed } = own;
  const merged =
    retry === undefined && listed === undefined ? explicit : { ...explicit, retry: retry ?? {}, schedule: listed };
  return policyOf(preset, { ...merged, onExhausted });
}

/** A listed schedule has no single parameters: setting one turns the policy into an exponential one. */
function retryOf(own: RetryPolicy, explicit: ExplicitPolicy["retry"]): RetryPolicy {
  const set = Object.fromEntries(Object.entries(explicit).filter(([, value]) => value !== undefined));
  if (Object.keys(set).length === 0) return own;
  const base = own.kind === "exponential" ? own : RETRY_PRESETS.flag;
  const policy = { ...base, ...set } as Required<ExponentialRetryOptions>;
  // If only one of the two is set, the other one adapts.
  if (explicit.maxMs === undefined) policy.maxMs = Math.max(policy.maxMs, policy.initialMs);
  else policy.initialMs = Math.min(policy.initialMs, policy.maxMs);
  const { initialMs, factor, maxMs, jitter, attemptsMax } = policy;
  return exponentialRetry({ initialMs, factor, maxMs, jitter, attemptsMax });
}

const TABLE_PRESETS = Object.keys(PRESETS) as TablePreset[];

/** The defaults of a setting by kind of table; null where the kind does not matter. */
export function presetDefaults(name: SettingName): Readonly<Record<TablePreset, string | number>> | null {
  const of = FROM_PRESET[name];
  if (of === undefined) return null;
  return Object.fromEntries(TABLE_PRESETS.map((preset) => [preset, of(PRESETS[preset])])) as Record<
    TablePreset,
    string | number
  >;
}

const FROM_PRESET: { readonly [Name in SettingName]?: (policy: TablePolicy) => string | number } = {
  POLL_INTERVAL_MS: ({ pollIntervalMs }) => pollIntervalMs,
  BATCH_SIZE: ({ batchSize }) => batchSize,
  ON_EXHAUSTED: ({ onExhausted }) => onExhausted,
  MAX_RETRIES: ({ retry }) => (retry.kind === "exponential" ? retry.attemptsMax : retry.delaysMs.length + 1),
  RETRY_INITIAL_DELAY_MS: ({ retry }) => (retry.kind === "exponential" ? retry.initialMs : (retry.delaysMs[0] ?? 0)),
  RETRY_MAX_DELAY_MS: ({ retry }) => (retry.kind === "exponential" ? retry.maxMs : (retry.delaysMs.at(-1) ?? 0)),
  RETRY_JITTER: ({ retry }) => (retry.kind === "exponential" ? retry.jitter : 0),
};
