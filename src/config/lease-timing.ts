import { DEFAULT_TIMING, type Timing } from "../core/limits.ts";
import type { DatabaseOptions } from "../postgres/pool.ts";
import type { Settings } from "./settings.ts";

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

export function publishTimeoutFor(leaseMs: number): number {
  return Math.min(DEFAULT_TIMING.publishTimeoutMs, leaseMs / 2);
}

/** The engine gives a publish up after this time: a client must tell of silence before, with its reason. */
export function publishMsOf({ LEASE_TIMEOUT, PUBLISH_TIMEOUT }: Settings): number {
  return PUBLISH_TIMEOUT ?? publishTimeoutFor(LEASE_TIMEOUT ?? DEFAULT_TIMING.leaseMs);
}

/** A write that waits longer than half a lease could come back to a lane that is somebody else's. */
export function databaseTimeoutsFor(leaseMs: number): NonNullable<DatabaseOptions["timeouts"]> {
  return { statementMs: Math.round(Math.min(4_000, leaseMs * 0.4)), lockMs: Math.round(Math.min(2_000, leaseMs / 5)) };
}
