import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, statfsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

/**
 * A temporary folder whose name is also the mark of the processes that work in it: every server is started with the
 * name somewhere on its command line, so that all of them can be found, and none can outlive the test process.
 */
export type Scratch = {
  readonly path: string;
  readonly mark: string;
  remove(): Promise<void>;
};

// Its standard input ends when the test process ends, however that happens, kill -9 included. Then it kills whatever
// still carries a mark and removes the folders. A killed PostgreSQL leaves a shared memory segment, named in line 7 of
// its pid file, which nothing else would ever free.
const watchdogScript = `
while read -r folder; do folders="$folders $folder"; done
for folder in $folders; do
  [ -d "$folder" ] || continue
  for round in 1 2 3; do
    for file in $(grep -lasF -- "\${folder##*/}" /proc/[0-9]*/cmdline); do
      pid=\${file#/proc/}
      kill -9 "\${pid%/cmdline}"
    done
  done
  segment=$(sed -n '7s/^ *[0-9]* *//p' "$folder/data/postmaster.pid") && [ -n "$segment" ] && ipcrm -m "$segment"
  mountpoint -q "$folder/mount" && umount -l "$folder/mount"
  rm -rf "$folder"
done`;

let watchdog: ChildProcess | undefined;

function guard(folder: string): void {
  if (!watchdog) {
    // Detached: a signal to the test's whole process group must not take the watchdog along.
    watchdog = spawn("/bin/sh", ["-c", watchdogScript], { stdio: ["pipe", "ignore", "ignore"], detached: true });
    watchdog.unref();
    watchdog.stdin?.on("error", () => {});
    (watchdog.stdin as unknown as { unref(): void }).unref();
  }
  watchdog.stdin?.write(`${folder}\n`);
}

/** Where: in memory, on disk, or in a folder that is there. */
export function createScratch(kind: string, where: "memory" | "disk" | { readonly within: string }): Scratch {
  const parent = where === "memory" ? memoryFolder() : where === "disk" ? tmpdir() : where.within;
  const path = mkdtempSync(join(parent, `outbox-relay-${kind}-`));
  // mkdtemp makes it 0700, and a server that root starts under another account could not enter.
  chmodSync(path, 0o755);
  guard(path);
  return {
    path,
    mark: basename(path),
    remove: () => rm(path, { recursive: true, force: true, maxRetries: 3 }),
  };
}

/** A thousand small files, a fresh data folder of PostgreSQL, cost most of a second on disk and nothing in memory. */
function memoryFolder(): string {
  const roomNeeded = 4 * 1024 ** 3; // containers often have 64 MB there
  try {
    const { bavail, bsize } = statfsSync("/dev/shm");
    return bavail * bsize > roomNeeded ? "/dev/shm" : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** The ids of all living processes that carry the mark. */
export function markedProcesses(mark: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && (readProc(name, "cmdline")?.includes(mark) ?? false))
    .map(Number);
}

/** True once a stop signal has taken effect; a process that is gone counts as stopped too. */
export function isStopped(pid: number): boolean {
  const stat = readProc(String(pid), "stat");
  return stat === undefined || stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
}

/** Sends a signal; a process that is gone already is no error. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function readProc(pid: string, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return undefined;
  }
}
