/**
 * The valid name that was probably meant, or undefined when none resembles what was written: by default more than half
 * of it wrong is no slip of the keyboard any more.
 */
export function nearestName(
  written: string,
  valid: Iterable<string>,
  slipsMax = Math.max(2, Math.floor(written.length / 2)),
): string | undefined {
  let nearest: string | undefined;
  let best = slipsMax + 1;
  for (const name of valid) {
    const distance = editDistance(written.toLowerCase(), name.toLowerCase());
    if (distance < best) {
      best = distance;
      nearest = name;
    }
  }
  return nearest;
}

/** Levenshtein's: insertions, deletions and replacements. */
function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = above[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, above[column]! + 1, current[column - 1]! + 1));
    }
    above = current;
  }
  return above[b.length]!;
}
