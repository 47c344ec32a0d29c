/** Rates of growing totals between two samples. */
export class Rates {
  readonly #last = new Map<string, { readonly total: number; readonly atMs: number }>();

  /** Per second; 0 for the first sample, and if the total fell because its counter was reset. */
  perSecond(name: string, total: number, nowMs: number): number {
    const last = this.#last.get(name);
    this.#last.set(name, { total, atMs: nowMs });
    if (last === undefined || nowMs <= last.atMs) return 0;
    return Math.max(0, ((total - last.total) * 1_000) / (nowMs - last.atMs));
  }
}
