import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheFolder, embeddedBinaries } from "../../src/dev/embedded-postgres.ts";

export type PostgresVersion = 15 | 18;

const run = promisify(execFile);

/** The folder of `initdb` and `postgres`, readable by the server's account. */
export async function postgresBinaries(version: PostgresVersion): Promise<string> {
  return version === 15 ? await debianBinaries() : await embeddedBinaries();
}

async function debianBinaries(): Promise<string> {
  const folder = "/usr/lib/postgresql/15/bin";
  if (existsSync(join(folder, "postgres"))) return folder;
  const advice = "PostgreSQL 15 is missing and the tests do not run without it: apt-get install postgresql-15";
  if (process.getuid?.() !== 0) throw new Error(advice);
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
