const BAR_CELLS = 24;
const REDRAW_MS = 100;

/** What a progress line shows. */
export interface ProgressCounts {
  readonly delivered: number;
  readonly failed: number;
  /** Delivered and waiting events together; null while unknown. */
  readonly total: number | null;
  readonly isEstimate: boolean;
}

/** One line of progress for a terminal. */
export function progressLine({ delivered, failed, total, isEstimate }: ProgressCounts): string {
  const count = (value: number) => value.toLocaleString("en-US");
  const failures = failed === 0 ? "" : `, ${count(failed)} failed attempts`;
  if (total === null || total === 0) return `delivered ${count(delivered)}${failures}`;
  // Statistics lag behind. A full bar while more events arrive would be worse than none.
  if (isEstimate && delivered >= total) return `delivered ${count(delivered)}, more are waiting${failures}`;
  const share = Math.min(1, delivered / total);
  const full = Math.round(share * BAR_CELLS);
  const bar = "█".repeat(full) + "░".repeat(BAR_CELLS - full);
  const whole = `${isEstimate ? "about " : ""}${count(Math.max(total, delivered))}`;
  return `${bar} ${Math.floor(share * 100)} %  delivered ${count(delivered)} of ${whole}${failures}`;
}

interface Terminal {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Redraws the line, only on a terminal. Returns the function that stops it and clears the line. */
export function showProgress(terminal: Terminal, counts: () => ProgressCounts): () => void {
  if (!terminal.isTTY) return () => {};
  const wipe = "\r\u001b[2K";
  const timer = setInterval(() => terminal.write(wipe + progressLine(counts())), REDRAW_MS);
  return () => {
    clearInterval(timer);
    terminal.write(wipe);
  };
}

/** A bar for counted work, drawn on each `show` and only on a terminal. `end` clears it. */
export function countBar(terminal: Terminal): { show(done: number, total: number): void; end(): void } {
  if (!terminal.isTTY) return { show: () => {}, end: () => {} };
  const wipe = "\r\u001b[2K";
  return {
    show: (done, total) => {
      const full = total === 0 ? BAR_CELLS : Math.round((done / total) * BAR_CELLS);
      const count = `${done.toLocaleString("en-US")} of ${total.toLocaleString("en-US")}`;
      terminal.write(`${wipe}${"█".repeat(full)}${"░".repeat(BAR_CELLS - full)} ${count}`);
    },
    end: () => void terminal.write(wipe),
  };
}
