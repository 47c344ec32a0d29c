/**
 * Notices that not single events are bad but everything is: many events in a row failed for their own sake, all with
 * the same error and no success between. Then the circuit opens instead of a million events being buried one by one.
 */
export class Brake {
  readonly #eventsMax: number;
  /** Each counts once, however often it is tried: one stubborn event says nothing about the others. */
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

  succeeded(): void {
    if (this.#failed.size === 0) return;
    this.#failed.clear();
    this.#fingerprint = "";
  }
}

/** Ids, numbers and quoted values differ between events of one and the same error. */
export function fingerprintOf(reason: string): string {
  return reason
    .slice(0, 300)
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/gi, "#")
    .replace(/"[^"]{0,200}"|'[^']{0,200}'/g, "#")
    .replace(/\d+/g, "#");
}
