import type { EventHead } from "./event-head.ts";

/**
 * With this many blocked keys, no event with a key is shown. That is safe, and a topic that blocks so many keys is
 * rarely closed for long.
 */
const KEYS_MAX = 100_000;
/**
 * After this long the set is rebuilt from the start, because keys leave it only when their events are delivered or
 * deleted.
 */
const FORGET_MS = 30_000;

/** Visits all events from a sequence up to the end of the run. */
type Scan = (after: string, visit: (head: EventHead) => void) => Promise<void>;

/**
 * The keys that wait for a type that the current runs leave out. While the set of types stays the same, only events
 * written since the last run are scanned: a closed topic can have a long backlog in front of it.
 */
export class BlockedKeys {
  #about = "";
  #keys = new Set<string>();
  #seenTo = "0";
  #sinceMs = 0;

  /** `last` is the run's last sequence. */
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

/** Whether an earlier event of this key waits for a type that is left out. */
export type BlockedTest = (key: string) => boolean;
