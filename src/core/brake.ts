/**
 * Detects that not single events but all of them fail: many different events in a row, all with the same error and
 * without a success in between. The circuit then opens, before a million events become dead letters one by one.
 */
export class Brake {
  readonly #eventsMax: number;
  /** Each event counts once, however often it is retried: one bad event says nothing about the others. */
  readonly #failed = new Set<string>();
  #fingerprint = "";

  constructor(eventsMax: number) {
    this.#eventsMax = eventsMax;
  }

  /** True when this failure is the one that pulls the brake. */
  failed(id: string, reason: string): boolean {
    const fingerprint = fingerprintOf(reason);
    if (fingerprint !== this.#fingerprint) this.#failed.clear();
    this.#fingerprint = fingerprint;
    if (this.#failed.size >= this.#eventsMax || this.#failed.has(id)) return false;
    this.#failed.add(id);
    return this.#failed.size === this.#eventsMax;
  }

  /** An event was delivered: the count begins again. */
  succeeded(): void {
    if (this.#failed.size === 0) return;
    this.#failed.clear();
    this.#fingerprint = "";
  }
}

/** The reason without ids, numbers and quoted values, which differ between events that fail with the same error. */
export function fingerprintOf(reason: string): string {
  return reason
    .slice(0, 300)
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/gi, "#")
    .replace(/"[^"]{0,200}"|'[^']{0,200}'/g, "#")
    .replace(/\d+/g, "#");
}
