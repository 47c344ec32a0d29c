/**
 * Notices that not single events are bad but everything is: many failures of scope event in a row, all with the same
 * error and no success between. Then the circuit opens instead of a million events being buried one by one.
 */
export class Brake {
  readonly #failuresMax: number;
  #inRow = 0;
  #fingerprint = "";

  constructor(failuresMax: number) {
    this.#failuresMax = failuresMax;
  }

  /** True when this failure is the one that pulls the brake. */
  failed(reason: string): boolean {
    const fingerprint = fingerprintOf(reason);
    this.#inRow = fingerprint === this.#fingerprint ? this.#inRow + 1 : 1;
    this.#fingerprint = fingerprint;
    return this.#inRow === this.#failuresMax;
  }

  succeeded(): void {
    this.#inRow = 0;
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
