import { nearestName } from "../routing/nearest-name.ts";

/** Where in a log somebody begins who never read it. */
export type LogStart = "beginning" | "now" | Date;

const WORDS = ["beginning", "now"] as const;
/** With its zone, since the relay's machine and the writer's may not be in the same; a day begins in UTC. */
const TIME = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2}))?$/i;

/** Undefined when it is none: then `problem` is told why, in words that follow the name of the setting. */
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
    problem(`is ${written}, which is in the future: write now to begin with what is written from now on`);
    return undefined;
  }
  return time;
}
