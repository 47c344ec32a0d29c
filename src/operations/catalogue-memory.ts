import type { Database } from "../postgres/pool.ts";

/** People look at the same tables again and again, and what the catalogue says of them hardly ever changes. */
const KEPT_MS = 10_000;
const KEPT_MAX = 1_000;

const all = new WeakMap<object, Map<string, { readonly untilMs: number; readonly value: unknown }>>();

/** What was found out of a database a moment ago, under a name that says everything that it depends on. */
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
