import { writeSync } from "node:fs";
import { pino } from "pino";

/** A stream of log lines to a file descriptor. */
export interface LogOutput {
  readonly stream: ReturnType<typeof pino.destination>;
  /** Resolves when all lines are written or the reader is gone. */
  written(): Promise<void>;
}

/** Bound for unread lines: a reader that stalls costs log lines, not the process. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024;
/** At the end of the process, a reader that reads nothing for this long is given up. */
const STALL_MS = 500;

/**
 * Writes lines to a file descriptor in the background, and flushes the rest at the end of the process. The library's
 * own flush retries for ever; here a reader that is gone or stalled cannot keep the process from ending.
 */
export function logOutput(fd: 1 | 2): LogOutput {
  let isEnding = false;
  // Must run before the library's own exit listener, which flushes the rest.
  process.once("exit", () => {
    isEnding = true;
  });
  // The getter makes the pipe non-blocking: a blocking write to a full pipe would even keep the process from ending.
  void (fd === 1 ? process.stdout : process.stderr);
  const timeout = new ReaderTimeout();
  const retryEAGAIN = (_: unknown, writing: number, more: number) => !isEnding || timeout.allows(writing + more);
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
      const notice = { level: "warn", time: new Date().toISOString(), dropped, message: DROPPED };
      dropped = 0;
      stream.write(`${JSON.stringify(notice)}\n`);
    }
    if (unwritten <= 0) settle();
  });
  stream.on("error", settle);
  stream.flushSync = () => {
    // Before the end, background writes suffice, and a synchronous flush could overtake lines that are being written.
    if (!isEnding || unwritten <= 0 || !isRead(fd)) return;
    try {
      flushSync.call(stream);
    } catch {
      // The reader stalls, and there is no other place to report it.
    }
  };
  return {
    stream,
    written: () => (unwritten <= 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
}

const DROPPED = "log lines were dropped because the reader of the log stalled";

/** Allows waiting for the reader while it makes progress. */
class ReaderTimeout {
  #left = -1;
  #untilMs = 0;

  /** `left`: bytes that are not written yet. */
  allows(left: number): boolean {
    const nowMs = performance.now();
    if (left !== this.#left) this.#untilMs = nowMs + STALL_MS;
    this.#left = left;
    return nowMs < this.#untilMs;
  }
}

/** Only a write shows whether the reader is alive. An empty line is harmless to a reader of lines. */
function isRead(fd: number): boolean {
  try {
    writeSync(fd, "\n");
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EAGAIN";
  }
}
