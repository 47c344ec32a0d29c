import { DEFAULT_TIMING, type Timing } from "../core/limits.ts";
import type { DatabaseOptions } from "../postgres/pool.ts";
import type { Settings } from "./settings.ts";

type LeaseSettings = Pick<Settings, "INSTANCE_LEASE" | "LEASE_TIMEOUT" | "PUBLISH_TIMEOUT">;

/** The engine may take half of the time again to close what hangs; the whole must fit into what was promised. */
const STOP_SHARE = 0.6;

/** What must be shorter than the lease shrinks with it. */
export function timingFor(leaseMs: number, shutdownMs: number, publishTimeoutMs: number): Partial<Timing> {
  return {
    leaseMs,
    leaseMarginMs: Math.min(DEFAULT_TIMING.leaseMarginMs, leaseMs / 4),
    publishTimeoutMs,
    shutdownMs: shutdownMs * STOP_SHARE,
  };
}

/**
 * How long an instance lives without a sign of life. The lease of claims in a table may be much longer, as it is with
 * the Open Outbox Relay: then nothing of that has to wait for a process that is known to be dead.
 */
export function instanceLeaseOf({ INSTANCE_LEASE, LEASE_TIMEOUT, PUBLISH_TIMEOUT = 0 }: LeaseSettings): number {
  const { leaseMs } = DEFAULT_TIMING;
  return INSTANCE_LEASE ?? Math.min(LEASE_TIMEOUT ?? leaseMs, Math.max(leaseMs, 2 * PUBLISH_TIMEOUT));
}

export function publishTimeoutFor(leaseMs: number): number {
  return Math.min(DEFAULT_TIMING.publishTimeoutMs, leaseMs / 2);
}

/** The engine gives a publish up after this time: a client must tell of silence before, with its reason. */
export function publishMsOf(settings: LeaseSettings): number {
  return settings.PUBLISH_TIMEOUT ?? publishTimeoutFor(instanceLeaseOf(settings));
}

/** A write that waits longer than half a lease could come back to a lane that is somebody else's. */
export function databaseTimeoutsFor(leaseMs: number): NonNullable<DatabaseOptions["timeouts"]> {
  return { statementMs: Math.round(Math.min(30_000, leaseMs * 0.4)), lockMs: Math.round(Math.min(2_000, leaseMs / 5)) };
}
