/** The same items, beginning with another one each turn, so that no item is always the last. */
export function rotated<T>(items: readonly T[], turn: number): T[] {
  const from = items.length === 0 ? 0 : turn % items.length;
  return [...items.slice(from), ...items.slice(0, from)];
}
