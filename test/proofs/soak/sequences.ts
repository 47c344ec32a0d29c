/**
 * Counts lost, doubled and swapped events without remembering them: the events of a key are numbered from 1 without a
 * gap, so that the next number is all there is to know of a key. A number that comes again is a duplicate, one that is
 * left out is lost, unless it comes late: then it is out of order.
 */
export class Sequences {
  count = 0;
  duplicates = 0;
  outOfOrder = 0;
  readonly #last = new Map<string, number>();
  readonly #missing = new Map<string, Set<number>>();

  see(key: string, number: number): void {
    this.count += 1;
    const last = this.#last.get(key) ?? 0;
    if (number > last) {
      for (let left = last + 1; left < number; left += 1) this.#missingOf(key).add(left);
      this.#last.set(key, number);
    } else if (this.#missing.get(key)?.delete(number)) this.outOfOrder += 1;
    else this.duplicates += 1;
  }

  /** Of keys whose events are numbered up to `last`. */
  lost(keys: readonly string[], last: number): number {
    return keys.reduce((sum, key) => {
      return sum + Math.max(0, last - (this.#last.get(key) ?? 0)) + (this.#missing.get(key)?.size ?? 0);
    }, 0);
  }

  #missingOf(key: string): Set<number> {
    const missing = this.#missing.get(key) ?? new Set();
    this.#missing.set(key, missing);
    return missing;
  }
}
