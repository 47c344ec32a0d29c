import { writeSync } from "node:fs";
import { pino } from "pino";

export type LogOutput = ReturnType<typeof pino.destination>;

/**
 * Lines for a file descriptor, written in the background. What is left at the end of the process is written then; but a
 * reader that is gone must not keep the process from ending, as it does with the library's own way, which tries for ever.
 */
export function logOutput(fd: 1 | 2): LogOutput {
  const output = pino.destination({ dest: fd, sync: false });
  let unwritten = 0;
  const write = output.write.bind(output);
  output.write = (line) => {
    unwritten += Buffer.byteLength(line);
    return write(line);
  };
  output.on("write", (bytes: number) => {
    unwritten -= bytes;
  });
  const flushSync = output.flushSync.bind(output);
  output.flushSync = () => {
    if (unwritten > 0 && isRead(fd)) flushSync();
  };
  return output;
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
