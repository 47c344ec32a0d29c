import type { EventRow } from "../../kit/types.ts";

export interface Tailed {
  readonly what: "new" | "changed";
  readonly event: EventRow;
}

const ROWS_MAX = 300;

export function rowKey({ id, source }: { readonly id: string; readonly source: string }): string {
  return JSON.stringify([source, id]);
}

/** Applies updates from the tail: new rows in front, changed rows in place. The oldest rows are dropped. */
export function withTailed(rows: readonly EventRow[], tailed: readonly Tailed[]): readonly EventRow[] {
  const byKey = new Map(rows.map((row) => [rowKey(row), row]));
  const fresh = new Map<string, EventRow>();
  for (const { what, event } of tailed) {
    const key = rowKey(event);
    if (byKey.has(key)) byKey.set(key, event);
    // A change to an unknown event: it was written before the page was opened, so it is not new.
    else if (what === "new" || fresh.has(key)) fresh.set(key, event);
  }
  return [...[...fresh.values()].reverse(), ...byKey.values()].slice(0, ROWS_MAX);
}
