import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { Client } from "./pairs.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const SUITES_MS_MAX = 900_000;
const run = promisify(execFile);

export interface Outcome {
  /** `ioredis 5.11.1` */
  readonly installed: readonly string[];
  /** `28 passed`, or what went wrong. */
  readonly result: string;
  readonly isGood: boolean;
}

/** Installs the packed package beside the clients, loads the entries there, and runs the suites with those clients. */
export async function tryPair(
  folder: string,
  tarball: string,
  client: Client,
  pair: readonly string[],
): Promise<Outcome> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const packages = pair.map((spec) => spec.slice(0, spec.lastIndexOf("@")));
  try {
    const options = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"];
    // The clients are there first, as in an application that adds the relay.
    await run("npm", ["install", "--save-exact", ...options, ...pair], { cwd: folder });
    await run("npm", ["install", ...options, tarball], { cwd: folder });
    await load(folder, client.entries);
  } catch (error) {
    return { installed: pair, result: firstLine(error), isGood: false };
  }
  const installed = packages.map((name) => `${name} ${versionIn(folder, name)}`);
  return { installed, ...(await runSuites(folder, packages, client)) };
}

async function load(folder: string, entries: readonly string[]): Promise<void> {
  const lines = entries.map((entry) => `await import("outbox-relay/${entry}");`);
  writeFileSync(join(folder, "main.mjs"), lines.join("\n"));
  await run(process.execPath, [join(folder, "main.mjs")]);
}

async function runSuites(folder: string, packages: readonly string[], client: Client) {
  const env = {
    ...process.env,
    NODE_OPTIONS: `--import ${pathToFileURL(join(import.meta.dirname, "redirect.ts"))}`,
    CLIENTS_APP: folder,
    CLIENTS_PACKAGES: packages.join(" "),
    ...(client.inTests === undefined ? {} : { CLIENTS_IN_TESTS: "yes" }),
  };
  const command = [join(ROOT, "test/run.ts"), "--sources", ...client.suites];
  const options = { cwd: ROOT, env, timeout: SUITES_MS_MAX, maxBuffer: 1 << 26 };
  const { stdout, isGood } = await run(process.execPath, command, options).then(
    ({ stdout }) => ({ stdout, isGood: true }),
    ({ stdout }: { readonly stdout?: string }) => ({ stdout: stdout ?? "", isGood: false }),
  );
  if (!isGood) process.stdout.write(stdout);
  return { result: /^\d+ passed, \d+ failed.*$/m.exec(stdout)?.[0].replace(", 0 failed", "") ?? "no result", isGood };
}

function versionIn(folder: string, name: string): string {
  const manifest = JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8"));
  return String((manifest as { readonly version: string }).version);
}

function firstLine(error: unknown): string {
  const { stderr, message } = error as { readonly stderr?: string; readonly message: string };
  return (stderr ?? message).split("\n").find((line) => /ERESOLVE|notarget|Error/.test(line)) ?? message;
}
