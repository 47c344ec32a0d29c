import type { Delivered } from "./readers.ts";

/** What is wrong with what a reader delivered, against what the table holds; empty when nothing is. */
export function verdict(delivered: readonly Delivered[], written: ReadonlyMap<number, Delivered>): readonly string[] {
  const wrong: string[] = [];
  const seen = new Set<number>();
  const lastOf = new Map<string, number>();
  for (const { position, key, n } of delivered) {
    if (seen.has(position)) wrong.push(`row ${position} (${key} ${n}) was delivered twice`);
    if (!written.has(position)) wrong.push(`row ${position} (${key} ${n}) is not in the table`);
    seen.add(position);
    const last = lastOf.get(key) ?? 0;
    if (n <= last) wrong.push(`${key}: ${n} came after ${last}`);
    lastOf.set(key, n);
  }
  for (const { position, key, n } of written.values()) {
    if (!seen.has(position)) wrong.push(`row ${position} (${key} ${n}) was lost`);
  }
  return wrong;
}
