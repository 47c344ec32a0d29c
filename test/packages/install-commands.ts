// npm itself decides whether the package fits beside what an application has, and whether the documents' commands work.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { createScratch } from "../servers/scratch.ts";

const root = resolve(import.meta.dirname, "../..");
const COMMAND = /[`"](npm install\s[^`"$]+)[`"]|^ *(npm install [^#`"$\n]+)/gm;
const run = promisify(execFile);
const scratch = createScratch("install", "disk");
let tarball = "";

/** Only the manifest matters here: what is in the package is another test's business. */
before(async () => {
  const folder = join(scratch.path, "package");
  mkdirSync(folder);
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ ...manifest, scripts: {}, workspaces: undefined }));
  await run("npm", ["pack", "--ignore-scripts"], { cwd: folder });
  tarball = join(folder, `outbox-relay-${manifest.version}.tgz`);
});

after(() => scratch.remove());

let projects = 0;

/** Throws what npm says, such as ERESOLVE. Nothing is downloaded but the descriptions of packages. */
async function install(present: Readonly<Record<string, string>>, wanted: readonly string[]): Promise<void> {
  const folder = join(scratch.path, `project-${projects++}`);
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies: present }));
  const names = wanted.map((name) => (name === "outbox-relay" ? tarball : name));
  const options = ["--package-lock-only", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"];
  await run("npm", ["install", ...options, ...names], { cwd: folder, maxBuffer: 1 << 26 });
}

describe("an application keeps the clients that it has", () => {
  for (const [name, version] of [
    ["ioredis", "^5.3.0"],
    ["bullmq", "^5.30.0"],
    ["amqplib", "^0.10.0"],
    ["@opentelemetry/api", "1.9.0"],
    ["@aws-sdk/client-sqs", "3.716.0"],
    ["pg", "~8.11.0"],
  ] as const) {
    test(`H3 ${name} ${version}`, async () => {
      await assert.doesNotReject(install({ [name]: version }, ["outbox-relay"]));
    });
  }

  test("H3 what no adapter is tested with is refused", async () => {
    await assert.rejects(install({ ioredis: "4.28.5" }, ["outbox-relay"]), /ERESOLVE/);
  });
});

describe("the documents' install commands work in an application", () => {
  const documented = documentedCommands();
  for (const [at, command] of documented.entries()) {
    const words = wordsOf(command);
    // What fits together fits alone.
    const isPart = documented.some((other, place) => {
      const all = wordsOf(other);
      return [...words].every((word) => all.has(word)) && (all.size > words.size || place < at);
    });
    if (isPart) continue;
    test(`H3 A21 ${command}`, async () => {
      await assert.doesNotReject(install({ "outbox-relay": tarball }, [...words]));
    });
  }
});

function wordsOf(command: string): Set<string> {
  return new Set(command.split(/\s+/).filter((word) => !["npm", "install", "outbox-relay"].includes(word)));
}

/** In blocks and lines of the documents, and in the program's own messages. */
function documentedCommands(): readonly string[] {
  const files = globSync(["README.md", "docs/**/*.md", "deploy/**/*.md", "src/**/*.md", "src/**/*.ts"], { cwd: root });
  const commands = files
    .filter((path) => !path.endsWith(".test.ts"))
    .flatMap((file) => [...readFileSync(join(root, file), "utf8").matchAll(COMMAND)])
    .map(([, inline, line]) => (inline ?? line ?? "").trim().split(/\s+/).join(" "));
  return [...new Set(commands)].sort();
}
