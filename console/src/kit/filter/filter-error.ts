/** The term of a filter that the service rejected. */
interface FilterFault {
  /** Offset of the term within the filter. */
  readonly start: number;
  readonly end: number;
  readonly problem: string;
}

const FORM = /^("(?:[^"\\]|\\.)*") at character (\d+) of the filter: (.*)$/s;

/** Null for an error that is not about a term of the filter. */
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

/** Removes the error code and the generic advice after it: the problem is more specific. */
function withoutCode(problem: string): string {
  return problem.replace(/ \[[A-Z_]+\].*$/s, "");
}
