/**
 * The valid name that was probably meant; undefined when none is close. By default a name with more than half of its
 * characters wrong is not a typing error.
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

/** The Levenshtein distance: insertions, deletions and replacements. */
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
