import { nearestName } from "../../routing/nearest-name.ts";

/** Where a new reader of a log starts. */
export type LogStart = "beginning" | "now" | Date;

const WORDS = ["beginning", "now"] as const;
/** Requires a time zone, since relay and writer can be in different ones; a date means midnight UTC. */
const TIME = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2}))?$/i;

/**
 * Parses a start; undefined if it is invalid. `problem` receives the reason, as a text that follows the setting's name.
 */
export function logStart(written: string, problem: (why: string) => void): LogStart | undefined {
  const word = WORDS.find((it) => it === written.toLowerCase());
  if (word !== undefined) return word;
  const time = TIME.test(written) ? new Date(written.replace(" ", "T")) : undefined;
  if (time === undefined || Number.isNaN(time.getTime())) {
    const nearest = nearestName(written, WORDS);
    const hint = nearest === undefined ? "" : ` (did you mean ${nearest}?)`;
    problem(`is ${JSON.stringify(written)}: write beginning, now, or a time such as 2026-05-01T00:00:00Z${hint}`);
    return undefined;
  }
  if (time.getTime() > Date.now()) {
    problem(`is ${written}, which is in the future: write now to start with new events`);
    return undefined;
  }
  return time;
}
