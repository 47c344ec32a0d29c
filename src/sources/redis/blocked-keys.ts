import type { EventHead } from "./event-head.ts";

/** From so many on nothing that has a key is shown: it is safe, and a topic that blocks so much will not be closed for long. */
const KEYS_MAX = 100_000;
/** What was delivered or deleted meanwhile is found out by a look from the start, once in so long. */
const FORGET_MS = 30_000;

/** Reads all events up to here; called with where to begin. */
type Scan = (after: string, visit: (head: EventHead) => void) => Promise<void>;

/**
 * Which keys wait for a type that is left out of runs. While the same types are left out only what was written since the
 * last run is looked at: a closed topic may have a long queue before it.
 */
export class BlockedKeys {
  #about = "";
  #keys = new Set<string>();
  #seenTo = "0";
  #sinceMs = 0;

  /** `last` is the last sequence of the run. */
  async find(types: readonly string[], lanes: readonly number[], last: string, scan: Scan): Promise<BlockedTest> {
    if (types.length === 0) return () => false;
    const about = JSON.stringify([types.toSorted(), lanes.toSorted()]);
    const isStale = performance.now() - this.#sinceMs > FORGET_MS || Number(last) < Number(this.#seenTo);
    if (about !== this.#about || isStale) this.#forget(about);
    const blocked = new Set(types);
    const keys = this.#keys;
    await scan(this.#seenTo, ({ key, type }) => {
      if (key !== null && blocked.has(type) && keys.size < KEYS_MAX) keys.add(key);
    });
    this.#seenTo = last;
    return keys.size < KEYS_MAX ? (key) => keys.has(key) : () => true;
  }

  #forget(about: string): void {
    this.#about = about;
    this.#keys = new Set();
    this.#seenTo = "0";
    this.#sinceMs = performance.now();
  }
}

export type BlockedTest = (key: string) => boolean;
