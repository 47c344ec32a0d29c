/** The same items, beginning at another one each turn. */
export function rotated<T>(items: readonly T[], turn: number): T[] {
  const from = items.length === 0 ? 0 : turn % items.length;
  return [...items.slice(from), ...items.slice(0, from)];
}
