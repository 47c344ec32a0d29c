import { execFile } from "node:child_process";
import { mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { createScratch } from "./scratch.ts";

const run = promisify(execFile);

/** A file system of its own, in memory, that can be full. Needs root. */
export interface SmallDisk extends AsyncDisposable {
  readonly folder: string;
  readonly freeBytes: number;
  /** Takes all that is left. Whoever writes gets "no space left on device", also for what others free meanwhile. */
  fill(): void;
  /** Gives back what `fill` took. */
  free(): void;
}

const CHUNK_BYTES = 1 << 20;

export async function mountSmallDisk(megabytes: number): Promise<SmallDisk> {
  const scratch = createScratch("disk", "memory");
  // The scratch's watchdog unmounts a folder of this name.
  const folder = join(scratch.path, "mount");
  mkdirSync(folder);
  await run("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=755`, "tmpfs", folder]);
  const ballast = join(folder, "ballast");
  const freeBytes = () => {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  };
  return {
    folder,
    get freeBytes() {
      return freeBytes();
    },
    fill() {
      for (const size of [CHUNK_BYTES, 4_096]) {
        const chunk = Buffer.alloc(size, 1);
        while (tryToAppend(ballast, chunk)) if (freeBytes() === 0) return;
      }
    },
    free: () => rmSync(ballast, { force: true }),
    async [Symbol.asyncDispose]() {
      await run("umount", ["-l", folder]);
      await scratch.remove();
    },
  };
}

function tryToAppend(file: string, chunk: Buffer): boolean {
  try {
    writeFileSync(file, chunk, { flag: "a" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") return false;
    throw error;
  }
}
