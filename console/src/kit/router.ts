import { useMemo } from "preact/hooks";
import { type Place, parsePlace, placeHash, type QueryValues } from "./place.ts";
import { createStore, useStore } from "./store.ts";

const hash = createStore(location.hash);
addEventListener("hashchange", () => hash.set(location.hash));

export function usePlace(): Place {
  const text = useStore(hash);
  return useMemo(() => parsePlace(text), [text]);
}

/** `replace` is for changes on every keystroke: they add no history entries. */
export function navigate(path: string, query: QueryValues = {}, how: "push" | "replace" = "push"): void {
  const next = placeHash(path, query);
  if (next === location.hash) return;
  if (how === "push") location.hash = next;
  else {
    history.replaceState(null, "", next);
    hash.set(next);
  }
}

/** Changes parts of the query of the current screen; null removes a value. */
export function changeQuery(changes: QueryValues, how: "push" | "replace" = "push"): void {
  const { path, query } = parsePlace(location.hash);
  navigate(path, { ...query, ...changes }, how);
}
