/** A progress bar on a terminal; no output elsewhere. */
export class Progress {
  readonly #total: number;
  readonly #startedMs = performance.now();
  readonly #stream = process.stderr;
  #done = 0;
  #drawnMs = 0;

  constructor(total: number) {
    this.#total = total;
  }

  get perSecond(): number {
    return this.#done / Math.max(0.001, (performance.now() - this.#startedMs) / 1_000);
  }

  advance(failed: number): void {
    this.#done += 1;
    const nowMs = performance.now();
    if (!this.#stream.isTTY || (nowMs - this.#drawnMs < DRAW_EVERY_MS && this.#done < this.#total)) return;
    this.#drawnMs = nowMs;
    const filled = Math.floor((this.#done / this.#total) * WIDTH);
    const bar = "█".repeat(filled) + "░".repeat(WIDTH - filled);
    const text = `${bar} ${this.#done}/${this.#total} seeds, ${this.perSecond.toFixed(0)}/s, ${failed} failed`;
    this.#stream.write(`\r${text}\u001b[K`);
  }

  end(): void {
    if (this.#stream.isTTY) this.#stream.write("\r\u001b[K");
  }
}

const WIDTH = 30;
const DRAW_EVERY_MS = 100;
