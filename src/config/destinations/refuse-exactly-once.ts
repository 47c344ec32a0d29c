import type { WrittenDestination } from "./destination-scheme.ts";

/** The relay never lowers a guarantee silently: asking for more than the destination offers is an error. */
export function refuseExactlyOnce({ settings, problems }: WrittenDestination, kind: string): void {
  if (settings.DELIVERY !== "exactly-once") return;
  problems.push(`DELIVERY is "exactly-once": ${kind} does not support it; write at-least-once`);
}
