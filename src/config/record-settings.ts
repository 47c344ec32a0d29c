import { setting } from "./setting.ts";
import { duration, list, matching } from "./value-types.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** What is kept for people who look at single events, and what they never see. */
export const recordSettings = {
  RECORD_DELIVERED: setting(
    "record.delivered",
    matching(/^(all|off|\d{1,6})$/i, "all, off, or a whole number of events a second").default("50"),
    "Delivered events that are recorded with their times and headers: so many a second and process, all, or off; attempts that failed always are",
  ),
  RECORD_RETENTION: setting(
    "record.retention",
    duration({ minMs: 1_000, maxMs: 3_650 * DAY }).default(7 * DAY),
    "How long recorded attempts are kept",
  ),
  REDACT: setting(
    "record.redact",
    list().optional(),
    "Headers and fields of JSON payloads that are never shown or recorded, such as password, card.* or *token*; what is delivered stays as it is",
  ),
};

/** Events a second; Infinity for all of them. */
export function deliveredPerSecond(written: string): number {
  const word = written.toLowerCase();
  if (word === "all") return Number.POSITIVE_INFINITY;
  return word === "off" ? 0 : Number(word);
}
