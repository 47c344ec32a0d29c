export interface LineChange {
  /** Of the first line that differs, counted from 1. */
  readonly line: number;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** What differs between two texts: the lines from the first to the last that do. Null when nothing does. */
export function lineChange(before: string, after: string): LineChange | null {
  if (before === after) return null;
  const old = before.split("\n");
  const now = after.split("\n");
  const most = Math.min(old.length, now.length);
  let start = 0;
  while (start < most && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < most - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  return { line: start + 1, before: old.slice(start, old.length - end), after: now.slice(start, now.length - end) };
}

/** Null for JSON; else what the browser says of it. The values are not used: a number of 20 digits would not survive. */
export function jsonProblem(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
