import { setting } from "./setting.ts";
import { duration, list, matching } from "./value-types.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** Settings of recorded attempts, and of what is never shown. */
export const recordSettings = {
  RECORD_DELIVERED: setting(
    "record.delivered",
    matching(/^(all|off|\d{1,6})$/i, "all, off, or a whole number of events per second").default("50"),
    "Delivered events to record with times and headers, per second and process: a number, all, or off; failed attempts are always recorded",
  ),
  RECORD_RETENTION: setting(
    "record.retention",
    duration({ minMs: 1_000, maxMs: 3_650 * DAY }).default(7 * DAY),
    "Retention of recorded attempts",
  ),
  REDACT: setting(
    "record.redact",
    list().optional(),
    "Headers and JSON payload fields to redact wherever they are shown or recorded, such as password, card.* or *token*; delivered messages are unchanged",
  ),
};

/** Parses RECORD_DELIVERED; Infinity for all events. */
export function deliveredPerSecond(written: string): number {
  const word = written.toLowerCase();
  if (word === "all") return Number.POSITIVE_INFINITY;
  return word === "off" ? 0 : Number(word);
}
