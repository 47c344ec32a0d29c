import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EXIT, Exit } from "../cli/exit.ts";
import { reasonOf } from "../core/errors.ts";

// Its standard input ends when this process ends, however that happens, kill -9 included. Then it ends the server that
// works in the folder, at once but so that its shared memory is freed, and removes the folder.
const GUARD = `
while read -r line; do server=$line; done
if [ -n "$server" ]; then
  kill -QUIT "$server" && for round in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$server" || break; sleep 0.2; done
  kill -KILL "$server"
fi
rm -rf "$0"`;

export interface ScratchFolder {
  readonly path: string;
  /** From now on this process does not outlive us. */
  guard(pid: number): void;
  /** The guarded process has ended in good order; its number may soon be another one's. */
  release(): void;
  remove(): Promise<void>;
}

/** A temporary folder that goes away with this process, whatever ends it. */
export function createScratchFolder(): ScratchFolder {
  const path = makeFolder();
  // Detached: a signal to the whole process group must not take the guard along.
  const guard = spawn("/bin/sh", ["-c", GUARD, path], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  guard.on("error", () => {});
  guard.stdin.on("error", () => {});
  guard.unref();
  (guard.stdin as unknown as { unref(): void }).unref();
  const tell = (line: string) => void guard.stdin.write(`${line}\n`);
  return {
    path,
    guard: (pid) => tell(String(pid)),
    release: () => tell(""),
    remove: async () => {
      await rm(path, { recursive: true, force: true, maxRetries: 3 });
      const { promise: gone, resolve } = Promise.withResolvers<void>();
      if (guard.exitCode !== null || guard.pid === undefined) resolve();
      guard.once("exit", () => resolve());
      guard.ref();
      guard.stdin.end();
      await gone;
    },
  };
}

function makeFolder(): string {
  try {
    const path = mkdtempSync(join(tmpdir(), "outbox-relay-dev-"));
    // mkdtemp makes it 0700, and a server that root starts under another account could not enter.
    chmodSync(path, 0o755);
    return path;
  } catch (error) {
    throw new Exit(EXIT.usage, [
      `The folder for temporary files cannot be written: ${reasonOf(error)}`,
      "Set TMPDIR to one that can.",
    ]);
  }
}
