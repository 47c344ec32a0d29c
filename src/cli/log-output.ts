import { writeSync } from "node:fs";
import { pino } from "pino";

export interface LogOutput {
  readonly stream: ReturnType<typeof pino.destination>;
  /** Resolves when all lines are written, or nobody takes them any more. */
  written(): Promise<void>;
}

/** Of lines that nobody reads, so that a reader which stands still costs lines and not the process. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024;
/** A reader that takes nothing for so long at the end of the process is not waited for. */
const STILL_MS = 500;

/**
 * Lines for a file descriptor, written in the background. What is left at the end of the process is written then; but a
 * reader that is gone or stands still must not keep the process from ending, as it does with the library's own way, which
 * tries for ever.
 */
export function logOutput(fd: 1 | 2): LogOutput {
  let isEnding = false;
  // Before the library's own listener, which asks for what is left.
  process.once("exit", () => {
    isEnding = true;
  });
  // Whoever touches it makes a pipe one that never blocks: a write into a full one would not even let the process end.
  void (fd === 1 ? process.stdout : process.stderr);
  const patience = new EndPatience();
  const retryEAGAIN = (_: unknown, writing: number, more: number) => !isEnding || patience.goesOn(writing + more);
  const stream = pino.destination({ dest: fd, sync: false, maxLength: KEPT_BYTES_MAX, retryEAGAIN });
  const { flushSync, write } = stream;
  let unwritten = 0;
  let waiting: (() => void)[] = [];
  const settle = () => {
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  stream.write = (line) => {
    unwritten += Buffer.byteLength(line);
    return write.call(stream, line);
  };
  let dropped = 0;
  stream.on("drop", (line: string) => {
    dropped += 1;
    unwritten -= Buffer.byteLength(line);
  });
  stream.on("write", (bytes: number) => {
    unwritten -= bytes;
    if (dropped > 0 && unwritten < KEPT_BYTES_MAX / 2) {
      const told = { level: "warn", time: new Date().toISOString(), dropped, message: DROPPED };
      dropped = 0;
      stream.write(`${JSON.stringify(told)}\n`);
    }
    if (unwritten <= 0) settle();
  });
  stream.on("error", settle);
  stream.flushSync = () => {
    // In the midst of the work there is time, and what is on its way must not be overtaken.
    if (!isEnding || unwritten <= 0 || !isRead(fd)) return;
    try {
      flushSync.call(stream);
    } catch {
      // The reader stands still; there is nobody to tell.
    }
  };
  return {
    stream,
    written: () => (unwritten <= 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
}

const DROPPED = "log lines were left out: whoever reads the log took none for too long";

/** Waits for a reader as long as it reads. */
class EndPatience {
  #left = -1;
  #untilMs = 0;

  /** `left`: bytes that are not written yet. */
  goesOn(left: number): boolean {
    const nowMs = performance.now();
    if (left !== this.#left) this.#untilMs = nowMs + STILL_MS;
    this.#left = left;
    return nowMs < this.#untilMs;
  }
}

/** Only a write tells. An empty line harms nobody who reads line by line. */
function isRead(fd: number): boolean {
  try {
    writeSync(fd, "\n");
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EAGAIN";
  }
}
