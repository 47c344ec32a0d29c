/**
 * True when the pattern matches the type; `*` matches any characters, also none. Linear: it uses no regular expression.
 */
export function matchesPattern(pattern: string, type: string): boolean {
  const parts = pattern.split("*");
  const first = parts[0]!;
  if (parts.length === 1) return type === first;
  const last = parts[parts.length - 1]!;
  const end = type.length - last.length;
  if (end < first.length || !type.startsWith(first) || !type.endsWith(last)) return false;
  let at = first.length;
  for (let index = 1; index < parts.length - 1; index++) {
    const part = parts[index]!;
    const found = type.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/**
 * True when `wide` matches every type that `narrow` matches. A `*` in `narrow` is treated as a character that only a
 * `*` of `wide` can match.
 */
export function covers(wide: string, narrow: string): boolean {
  return matchesPattern(wide, narrow.replaceAll("*", ANY_RUN));
}

/** Replaces the `*` of the narrower pattern. No type contains it. */
const ANY_RUN = "\u{F0000}";
