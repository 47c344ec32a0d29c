import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, statSync, symlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { openRepository } from "../tidy/repository.ts";

const root = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

export interface Packed {
  readonly tarball: string;
  /** Paths inside the package. */
  readonly files: readonly string[];
  readonly unpackedBytes: number;
}

interface PackReport {
  readonly filename: string;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

/** Both packages, built and packed from a copy of the repository, as npm would publish them. */
export async function packPackages(scratch: string): Promise<{ readonly relay: Packed; readonly writer: Packed }> {
  const clone = join(scratch, "clone");
  for (const path of openRepository(root).files) {
    if (!statSync(join(root, path)).isFile()) continue;
    mkdirSync(dirname(join(clone, path)), { recursive: true });
    cpSync(join(root, path), join(clone, path));
  }
  symlinkSync(join(root, "node_modules"), join(clone, "node_modules"));
  await Promise.all([build(clone), build(join(clone, "packages/writer"))]);
  return { relay: await pack(clone), writer: await pack(join(clone, "packages/writer")) };
}

async function build(folder: string): Promise<void> {
  await run("npm", ["run", "build"], { cwd: folder, maxBuffer: 1 << 26 });
}

async function pack(folder: string): Promise<Packed> {
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts"], { cwd: folder, maxBuffer: 1 << 26 });
  const [packed] = Object.values(JSON.parse(stdout) as Record<string, PackReport>);
  assert.ok(packed);
  const { filename, files, unpackedSize } = packed;
  return { tarball: join(folder, filename), files: files.map(({ path }) => path), unpackedBytes: unpackedSize };
}
