/**
 * Encodes positions as a short text: runs of consecutive numbers, each as its distance from the end of the previous run
 * and, if longer than one, its length, in base 36. Ten thousand consecutive positions take ten characters.
 */
export function encodeMarks(marks: readonly number[]): string {
  const sorted = [...new Set(marks)].sort((left, right) => left - right);
  const runs: string[] = [];
  let end = 0;
  for (let first = 0; first < sorted.length; ) {
    const start = sorted[first]!;
    let next = first + 1;
    while (next < sorted.length && sorted[next] === start + (next - first)) next += 1;
    const length = next - first;
    runs.push((start - end).toString(36) + (length === 1 ? "" : `+${(length - 1).toString(36)}`));
    end = start + length - 1;
    first = next;
  }
  return runs.join(" ");
}

/** Returns null when the text is invalid. */
export function decodeMarks(text: string): ReadonlySet<number> | null {
  const marks = new Set<number>();
  if (text === "") return marks;
  let end = 0;
  for (const run of text.split(" ")) {
    const match = /^([0-9a-z]+)(?:\+([0-9a-z]+))?$/.exec(run);
    if (!match) return null;
    const start = end + Number.parseInt(match[1]!, 36);
    const more = match[2] === undefined ? 0 : Number.parseInt(match[2], 36);
    if (!Number.isSafeInteger(start + more) || marks.size + more > MARKS_MAX) return null;
    for (let mark = start; mark <= start + more; mark++) marks.add(mark);
    end = start + more;
  }
  return marks;
}

/** Far more than a store keeps; a text with more is not a checkpoint. */
const MARKS_MAX = 10_000_000;
