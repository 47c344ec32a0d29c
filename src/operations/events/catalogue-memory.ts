import type { Database } from "../../postgres/pool.ts";

/** Operators look at the same tables repeatedly, and their catalogue entries hardly ever change. */
const KEPT_MS = 10_000;
const KEPT_MAX = 1_000;

const all = new WeakMap<object, Map<string, { readonly untilMs: number; readonly value: unknown }>>();

/** Caches a value from the catalogue briefly. Its name must contain everything that the value depends on. */
export async function fromCatalogue<Value>(
  { pool }: Database,
  name: string,
  find: () => Promise<Value>,
): Promise<Value> {
  const known = all.get(pool) ?? new Map();
  all.set(pool, known);
  const before = known.get(name);
  if (before !== undefined && before.untilMs > performance.now()) return before.value as Value;
  const value = await find();
  if (known.size >= KEPT_MAX) known.clear();
  known.set(name, { untilMs: performance.now() + KEPT_MS, value });
  return value;
}
