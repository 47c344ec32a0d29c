import type { EventRow } from "../../kit/types.ts";

export interface Tailed {
  readonly what: "new" | "changed";
  readonly event: EventRow;
}

const ROWS_MAX = 300;

export function rowKey({ id, source }: { readonly id: string; readonly source: string }): string {
  return JSON.stringify([source, id]);
}

/** The rows with what the tail said since: new ones in front, changed ones where they stand. The oldest go. */
export function withTailed(rows: readonly EventRow[], tailed: readonly Tailed[]): readonly EventRow[] {
  const byKey = new Map(rows.map((row) => [rowKey(row), row]));
  const fresh = new Map<string, EventRow>();
  for (const { what, event } of tailed) {
    const key = rowKey(event);
    if (byKey.has(key)) byKey.set(key, event);
    // One that has changed before it was seen here was written before this page was opened: it is not news.
    else if (what === "new" || fresh.has(key)) fresh.set(key, event);
  }
  return [...[...fresh.values()].reverse(), ...byKey.values()].slice(0, ROWS_MAX);
}
