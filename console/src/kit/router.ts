import { useMemo } from "preact/hooks";
import { type Place, parsePlace, placeHash, type QueryValues } from "./place.ts";
import { createStore, useStore } from "./store.ts";

const hash = createStore(location.hash);
addEventListener("hashchange", () => hash.set(location.hash));

export function usePlace(): Place {
  const text = useStore(hash);
  return useMemo(() => parsePlace(text), [text]);
}

/** `replace` for what is typed letter by letter: it leaves no trail of back steps. */
export function navigate(path: string, query: QueryValues = {}, how: "push" | "replace" = "push"): void {
  const next = placeHash(path, query);
  if (next === location.hash) return;
  if (how === "push") location.hash = next;
  else {
    history.replaceState(null, "", next);
    hash.set(next);
  }
}

/** Changes some of the query of the screen one is on; null takes a value away. */
export function changeQuery(changes: QueryValues, how: "push" | "replace" = "push"): void {
  const { path, query } = parsePlace(location.hash);
  navigate(path, { ...query, ...changes }, how);
}
