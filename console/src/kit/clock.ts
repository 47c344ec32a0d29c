import { createStore, useStore } from "./store.ts";

const TICK_MS = 1_000;

/** One clock for all relative times, so that they update together. */
const now = createStore(Date.now());
setInterval(() => {
  if (!document.hidden) now.set(Date.now());
}, TICK_MS);

export function useNow(): number {
  return useStore(now);
}
