import { writeSync } from "node:fs";
import { pino } from "pino";

export interface LogOutput {
  readonly stream: ReturnType<typeof pino.destination>;
  /** Resolves when all lines are written, or nobody takes them any more. */
  written(): Promise<void>;
}

/**
 * Lines for a file descriptor, written in the background. What is left at the end of the process is written then; but a
 * reader that is gone must not keep the process from ending, as it does with the library's own way, which tries for ever.
 */
export function logOutput(fd: 1 | 2): LogOutput {
  let isEnding = false;
  // Before the library's own listener, which asks for what is left.
  process.once("exit", () => {
    isEnding = true;
  });
  const stream = pino.destination({ dest: fd, sync: false });
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
  stream.on("write", (bytes: number) => {
    unwritten -= bytes;
    if (unwritten <= 0) settle();
  });
  stream.on("error", settle);
  stream.flushSync = () => {
    // In the midst of the work there is time, and what is on its way must not be overtaken.
    if (isEnding && unwritten > 0 && isRead(fd)) flushSync.call(stream);
  };
  return {
    stream,
    written: () => (unwritten <= 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
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
