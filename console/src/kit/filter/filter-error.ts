/** The word of a filter that the service did not understand. */
interface FilterFault {
  /** Of the word within the filter. */
  readonly start: number;
  readonly end: number;
  readonly problem: string;
}

const FORM = /^("(?:[^"\\]|\\.)*") at character (\d+) of the filter: (.*)$/s;

/** Null for an error that is about something else. */
export function filterFault(message: string): FilterFault | null {
  const [, quoted, at, problem] = FORM.exec(message) ?? [];
  if (quoted === undefined || at === undefined || problem === undefined) return null;
  const start = Number(at) - 1;
  return { start, end: start + wordIn(quoted).replace(/…$/, "").length, problem: withoutCode(problem) };
}

function wordIn(quoted: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted.slice(1, -1);
  }
}

/** Behind the code stands what to do about any such error; the problem has said it better. */
function withoutCode(problem: string): string {
  return problem.replace(/ \[[A-Z_]+\].*$/s, "");
}
