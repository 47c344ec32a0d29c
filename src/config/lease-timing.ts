import { DEFAULT_TIMING, type Timing } from "../core/limits.ts";
import type { DatabaseOptions } from "../postgres/pool.ts";
import type { Settings } from "./settings/settings.ts";

type LeaseSettings = Pick<Settings, "INSTANCE_LEASE" | "LEASE_TIMEOUT" | "PUBLISH_TIMEOUT">;

/**
 * The engine gets this share of the shutdown time: closing what hangs can take half as long again, and both must fit.
 */
const STOP_SHARE = 0.6;

/** Timings that must stay below the lease shrink with it. */
export function timingFor(leaseMs: number, shutdownMs: number, publishTimeoutMs: number): Partial<Timing> {
  return {
    leaseMs,
    leaseMarginMs: Math.min(DEFAULT_TIMING.leaseMarginMs, leaseMs / 4),
    publishTimeoutMs,
    shutdownMs: shutdownMs * STOP_SHARE,
  };
}

/**
 * How long an instance counts as alive without a heartbeat. Claims in a table can have a much longer lease, as in the
 * Open Outbox Relay; a short instance lease means that no event waits that long for a process known to be dead.
 */
export function instanceLeaseOf({ INSTANCE_LEASE, LEASE_TIMEOUT, PUBLISH_TIMEOUT = 0 }: LeaseSettings): number {
  const { leaseMs } = DEFAULT_TIMING;
  return INSTANCE_LEASE ?? Math.min(LEASE_TIMEOUT ?? leaseMs, Math.max(leaseMs, 2 * PUBLISH_TIMEOUT));
}

/** The default publish timeout for a lease. */
export function publishTimeoutFor(leaseMs: number): number {
  return Math.min(DEFAULT_TIMING.publishTimeoutMs, leaseMs / 2);
}

/** The publish timeout in force. A client must time out earlier, to report the reason. */
export function publishMsOf(settings: LeaseSettings): number {
  return settings.PUBLISH_TIMEOUT ?? publishTimeoutFor(instanceLeaseOf(settings));
}

/** A write that waits longer than half a lease could reach a lane that has another owner by then. */
export function databaseTimeoutsFor(leaseMs: number): NonNullable<DatabaseOptions["timeouts"]> {
  return { statementMs: Math.round(Math.min(30_000, leaseMs * 0.4)), lockMs: Math.round(Math.min(2_000, leaseMs / 5)) };
}
