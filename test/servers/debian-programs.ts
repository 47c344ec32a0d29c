import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "../../src/dev/embedded-postgres.ts";

const run = promisify(execFile);

/** Where Debian puts servers that are not meant for every user's path. */
const SERVER_FOLDERS = ["/usr/sbin", "/usr/lib/rabbitmq/bin", "/usr/lib/postgresql/15/bin"];

/**
 * Makes sure that each program is there, installing its Debian package where it is missing. `programs` says which
 * package brings which program. Fails loudly: no test that needs them is skipped.
 */
export async function installPrograms(what: string, programs: Readonly<Record<string, string>>): Promise<void> {
  const missing = missingPackages(programs);
  if (missing.length === 0) return;
  const advice = `The tests with ${what} do not run without: apt-get install ${missing.join(" ")}`;
  if (process.getuid?.() !== 0) throw new Error(advice);
  console.log(`installing the Debian packages ${missing.join(", ")}, once per machine: for the tests with ${what}`);
  // The lock makes parallel test files wait for one installation; policy-rc.d keeps Debian from starting a service.
  const script = `policy=/usr/sbin/policy-rc.d
    if ! test -e $policy; then printf '#!/bin/sh\\nexit 101\\n' >$policy; chmod +x $policy; trap "rm -f $policy" EXIT; fi
    export PATH="$PATH:${SERVER_FOLDERS.join(":")}"
    wanted() { command -v "$1" >/dev/null || echo "$2"; }
    packages="${Object.entries(programs)
      .map(([program, pack]) => `$(wanted ${program} ${pack})`)
      .join(" ")}"
    test -z "$(echo $packages)" && exit 0
    apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages`;
  await run("flock", [join(cacheFolder(), "install.lock"), "sh", "-ec", script]).catch((cause) => {
    throw new Error(advice, { cause });
  });
  if (missingPackages(programs).length > 0) throw new Error(advice);
}

function missingPackages(programs: Readonly<Record<string, string>>): string[] {
  const folders = [...(process.env.PATH ?? "").split(delimiter), ...SERVER_FOLDERS];
  return Object.entries(programs)
    .filter(([program]) => !folders.some((folder) => existsSync(join(folder, program))))
    .map(([, pack]) => pack);
}
