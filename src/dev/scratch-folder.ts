import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { reasonOf } from "../core/errors.ts";
import { EXIT, Exit } from "../service/exit.ts";

// The guard's standard input closes when this process ends, even by kill -9. It then stops the server that uses the folder
// with SIGQUIT, which frees its shared memory, and removes the folder.
const GUARD = `
while read -r line; do server=$line; done
if [ -n "$server" ]; then
  kill -QUIT "$server" && for round in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$server" || break; sleep 0.2; done
  kill -KILL "$server"
fi
rm -rf "$0"`;

export interface ScratchFolder {
  readonly path: string;
  /** The guard stops this process when ours ends. */
  guard(pid: number): void;
  /** The guarded process has exited: its pid may be reused, so the guard must not signal it. */
  release(): void;
  remove(): Promise<void>;
}

/** A temporary folder that is removed when this process ends, even by kill -9. */
export function createScratchFolder(): ScratchFolder {
  const path = makeFolder();
  // Detached: a signal to the process group must not end the guard.
  const guard = spawn("/bin/sh", ["-c", GUARD, path], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  guard.on("error", () => {});
  guard.stdin.on("error", () => {});
  guard.unref();
  (guard.stdin as unknown as { unref(): void }).unref();
  const send = (line: string) => void guard.stdin.write(`${line}\n`);
  return {
    path,
    guard: (pid) => send(String(pid)),
    release: () => send(""),
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
    // mkdtemp creates it with mode 0700, which would lock out a server under another account.
    chmodSync(path, 0o755);
    return path;
  } catch (error) {
    throw new Exit(EXIT.usage, [
      `The folder for temporary files is not writable: ${reasonOf(error)}`,
      "Set TMPDIR to a writable folder.",
    ]);
  }
}
