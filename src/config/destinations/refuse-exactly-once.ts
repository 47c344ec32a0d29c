import type { WrittenDestination } from "./destination-scheme.ts";

/** A guarantee is never lowered in silence: who asks for more than the destination has is told so. */
export function refuseExactlyOnce({ settings, problems }: WrittenDestination, kind: string): void {
  if (settings.DELIVERY !== "exactly-once") return;
  problems.push(`DELIVERY is "exactly-once": ${kind} cannot do that, write at-least-once`);
}
