import type { Overview } from "../kit/types.ts";

/** Health grades from best to worst. */
const GRADES = ["healthy", "ok", "attention", "degraded", "unhealthy", "down"];

/** The grade is more precise than the status. */
type Seen = Pick<Overview, "deadLetters" | "health" | "service"> & { readonly grade?: string };

/** The text of a notification about changes between two overviews; null if nothing got worse. */
export function noticeBetween(before: Seen, now: Seen): string | null {
  const [was, is] = [before.grade ?? before.health, now.grade ?? now.health];
  const isWorse = GRADES.indexOf(is) > GRADES.indexOf(was);
  const died = now.deadLetters - before.deadLetters;
  const parts = [
    ...(isWorse ? [`health ${was} → ${is}`] : []),
    ...(died > 0 ? [`${died} new dead ${died === 1 ? "letter" : "letters"}`] : []),
  ];
  return parts.length === 0 ? null : parts.join(", ");
}
