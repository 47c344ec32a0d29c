/** The delays before each further attempt, computed or listed, in milliseconds. */
export type RetryPolicy =
  | {
      readonly kind: "exponential";
      readonly initialMs: number;
      readonly factor: number;
      readonly maxMs: number;
      /** Share of the delay that is added at random, 0 to 1, so that many retries do not come at once. */
      readonly jitter: number;
      /** The failure with this number is the last one. */
      readonly attemptsMax: number;
    }
  | {
      readonly kind: "schedule";
      /** `[0, 30_000]`: retry at once, then after 30 s; the third failure is the last one. */
      readonly delaysMs: readonly number[];
    };

/** What an exponential policy changes over the default: 1 s, doubled up to 5 min, 10 attempts, no jitter. */
export interface ExponentialRetryOptions {
  initialMs?: number;
  factor?: number;
  maxMs?: number;
  jitter?: number;
  attemptsMax?: number;
}

/** A policy whose delays grow by a factor. Throws RangeError for a value out of range. */
export function exponentialRetry(options: ExponentialRetryOptions = {}): RetryPolicy {
  const policy = { initialMs: 1_000, factor: 2, maxMs: 300_000, jitter: 0, attemptsMax: 10, ...options };
  requireRange("retry.initialMs", policy.initialMs, 0, Number.MAX_SAFE_INTEGER);
  requireRange("retry.factor", policy.factor, 1, 1_000);
  requireRange("retry.maxMs", policy.maxMs, policy.initialMs, Number.MAX_SAFE_INTEGER);
  requireRange("retry.jitter", policy.jitter, 0, 1);
  requireRange("retry.attemptsMax", policy.attemptsMax, 1, 1_000);
  return { kind: "exponential", ...policy };
}

/** A policy with listed delays. Throws RangeError for a delay out of range. */
export function scheduledRetry(delaysMs: readonly number[]): RetryPolicy {
  for (const delayMs of delaysMs) requireRange("retry.delaysMs", delayMs, 0, Number.MAX_SAFE_INTEGER);
  return { kind: "schedule", delaysMs };
}

/** The policies of the presets, by the name of the preset. */
export const RETRY_PRESETS = {
  flag: exponentialRetry(),
  openoutbox: exponentialRetry({ maxMs: 86_400_000, jitter: 0.15, attemptsMax: 25 }),
  worker: exponentialRetry({ initialMs: 30_000, maxMs: 3_600_000, attemptsMax: 6 }),
  // At once, after 30 s, after 5 min, after 30 min: the fourth failure is the last one.
  intent: scheduledRetry([30_000, 300_000, 1_800_000]),
} as const;

/**
 * The delay after the n-th failure (1 is the first), or "exhausted" when no further attempt follows.
 * `draw` is a number in [0, 1).
 */
export function delayAfter(policy: RetryPolicy, failures: number, draw: number): number | "exhausted" {
  if (policy.kind === "schedule") return policy.delaysMs[failures - 1] ?? "exhausted";
  if (failures >= policy.attemptsMax) return "exhausted";
  const plainMs = Math.min(policy.maxMs, policy.initialMs * policy.factor ** (failures - 1));
  return Math.min(policy.maxMs, Math.round(plainMs * (1 + policy.jitter * draw)));
}

/** The longest delay of a policy: with `block`, an exhausted event is retried with this delay for ever. */
export function longestDelayMs(policy: RetryPolicy): number {
  if (policy.kind === "exponential") return policy.maxMs;
  return Math.max(1_000, ...policy.delaysMs);
}

function requireRange(name: string, value: number, min: number, max: number): void {
  if (!Number.isFinite(value) || value < min || value > max) {
    throw new RangeError(`${name} is ${value}; it must be a number from ${min} to ${max}`);
  }
}

/** The bounded wait that a Retry-After header asks for, in seconds or as a date. Null when the header is neither. */
export function retryAfterMs(written: string | undefined, wallMs: number, maxMs: number): number | null {
  if (written === undefined || written.length > 100) return null;
  const text = written.trim();
  const wantedMs = /^\d+$/.test(text) ? Number(text) * 1_000 : dateMs(text) - wallMs;
  return Number.isNaN(wantedMs) ? null : Math.min(Math.max(0, wantedMs), maxMs);
}

/** HTTP dates begin with the day of the week. The oldest form (asctime) names no time zone and means GMT. */
function dateMs(text: string): number {
  if (!/^[a-z]{3}/i.test(text)) return Number.NaN;
  return Date.parse(/\d{4}$/.test(text) ? `${text} GMT` : text);
}
