import type { EventRow } from "../../kit/types.ts";
import { rowKey } from "./tail-rows.ts";

/** Selected rows by their keys, including rows on other pages. */
export type Chosen = ReadonlyMap<string, EventRow>;

export function chosenOf(before: Chosen, shown: readonly EventRow[], keys: ReadonlySet<string>): Chosen {
  const next = new Map(before);
  for (const row of shown) {
    if (keys.has(rowKey(row))) next.set(rowKey(row), row);
    else next.delete(rowKey(row));
  }
  return next;
}

export function replayProblem(rows: readonly EventRow[]): string | null {
  const states = new Set(rows.map(({ state }) => state));
  const [state] = states;
  if (states.size > 1 || (state !== "dead" && state !== "delivered"))
    return "A plan holds either dead or delivered events: select only one kind.";
  return sourceProblem(rows);
}

/** A plan selects by id, and two sources may have events with the same id. */
export function sourceProblem(rows: readonly EventRow[]): string | null {
  return new Set(rows.map(({ source }) => source)).size > 1
    ? "A plan holds events of one source: select events of one source only."
    : null;
}
