import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Browser, chromium } from "playwright-core";
import { cacheFolder } from "../../src/dev/embedded-postgres.ts";

const run = promisify(execFile);
const program = "/usr/bin/chromium";

/** Nothing is fetched, reported or synchronized: the browser talks to the page under test alone. */
const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];

export async function openBrowser(): Promise<Browser> {
  return await chromium.launch({ executablePath: await chromiumProgram(), headless: true, args: flags });
}

/** The system's Chromium. Installed once per machine where that is allowed. */
export async function chromiumProgram(): Promise<string> {
  if (existsSync(program)) return program;
  const advice = "Chromium is missing and the tests of the pages do not run without it: apt-get install chromium";
  if (process.getuid?.() !== 0) throw new Error(advice);
  // The lock makes parallel test files wait for one installation.
  const install = `test -x ${program} && exit 0
    apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium`;
  await run("flock", [join(cacheFolder(), "install.lock"), "sh", "-c", install]).catch((cause) => {
    throw new Error(advice, { cause });
  });
  return program;
}
