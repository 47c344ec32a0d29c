import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";

/** A private server with a folder of its own that a test may treat as badly as an operating system would. */
export type ServerProcess = AsyncDisposable & {
  /** Holds the data folder and the log; gone after the dispose. */
  readonly folder: string;
  /** kill -9 of all of its processes; returns when they are gone. */
  kill(): Promise<void>;
  /** Starts again on the same ports and folder, whether it still runs or not. */
  restart(): Promise<void>;
  /** Freezes all of its processes: connections stay open and nobody answers. */
  pause(): Promise<void>;
  resume(): void;
  /** The end of the server's own log. */
  logTail(): string;
};

/** A server that could not be created leaves nothing behind. */
export async function createOrDispose<Server extends AsyncDisposable & { create(): Promise<void> }>(
  server: Server,
): Promise<Server> {
  try {
    await server.create();
    return server;
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
}

export function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

export function endOfLog(file: string): string {
  return readFileSync(file, "utf8").slice(-4_000);
}
