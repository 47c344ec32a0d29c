import { RelayError } from "../core/errors.ts";
import type { Limits, Timing } from "../core/limits.ts";

/** Throws CONFIG_INVALID for a limit that is not a positive number. */
export function checkLimits(limits: Limits): Limits {
  for (const [name, value] of Object.entries(limits)) requirePositive(`limits.${name}`, value);
  return limits;
}

/** Throws CONFIG_INVALID for a duration that is not positive or contradicts another one. */
export function checkTiming(timing: Timing): Timing {
  for (const [name, value] of Object.entries(timing)) requirePositive(`timing.${name}`, value);
  requireBelow("timing.leaseMarginMs", timing.leaseMarginMs, "timing.leaseMs", timing.leaseMs);
  // A publish must not outlive the lease: the next owner could deliver the same events at the same time.
  requireBelow("timing.publishTimeoutMs", timing.publishTimeoutMs, "timing.leaseMs", timing.leaseMs);
  return timing;
}

function requirePositive(name: string, value: number): void {
  if (Number.isFinite(value) && value > 0) return;
  throw new RelayError("CONFIG_INVALID", `${name} is ${value}; it must be a positive number.`);
}

function requireBelow(name: string, value: number, limitName: string, limit: number): void {
  if (value < limit) return;
  throw new RelayError("CONFIG_INVALID", `${name} (${value}) must be below ${limitName} (${limit}).`);
}
