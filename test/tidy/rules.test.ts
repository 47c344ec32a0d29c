/** Each rule of the tidy test finds what it is there for, and leaves alone what is allowed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { foreignInStatementFiles, incompleteAdapters } from "./adapters.ts";
import { deadConsoleExports, longComponents, wrongConsoleImports } from "./console.ts";
import { deadExports, deadFiles } from "./dead-code.ts";
import { brokenLinks, changelogForm, mergeMarkers, unknownCommands } from "./documents.ts";
import { namesBesideGlossary } from "./glossary.ts";
import { impureEngine, undeclaredPackages, wrongImports } from "./layers.ts";
import { type Offence, type Repository, repositoryOf } from "./repository.ts";
import { unprovedRequirements } from "./requirements.ts";
import { longFiles, longFunctions } from "./sizes.ts";
import { testsThatSleep, testsWithoutCheck } from "./test-habits.ts";
import { bannedWords, registryAddresses, vagueNames } from "./words.ts";

type Rule = (repository: Repository) => Offence[];

/** The places, as file:line, where the rule finds an offence. */
function places(rule: Rule, texts: Record<string, string>): string[] {
  return rule(repositoryOf(texts)).map(({ file, line }) => `${file}:${line}`);
}

test("imports may not point up, sideways between adapters, or out of src", () => {
  const found = places(wrongImports, {
    "src/core/event.ts": 'import "./state.ts";\nimport "../ports/source.ts";',
    "src/core/event.test.ts":
      'import "../relay/lane.ts";\nimport "../../test/servers/a.ts";\nimport "../../test/b.ts";',
    "src/sources/redis/redis-source.ts": 'import "../../postgres/pool.ts";\nimport "../memory/memory-source.ts";',
    "src/publishers/http/http-publisher.ts": 'import "../../relay/lane.ts";\nimport "./parts/http-errors.ts";',
    "src/ports/queue.ts": 'import "../core/event.ts";\nimport type { A } from "../requests/a.ts";',
    "src/relay/lane.ts": 'import "../routing/route.ts";\nimport "../telemetry/log.ts";',
    "src/operations/list.ts": 'import "../sources/redis/redis-source.ts";\nimport "../config/load.ts";',
    "src/http/console-files.ts": 'new URL("../../console/build.ts", import.meta.url);',
    "src/cli/run.ts": 'import "../http/server.ts";\nimport "../../test/servers/a.ts";',
    "src/stray/a.ts": "",
  });
  assert.deepEqual(found, [
    "src/cli/run.ts:2",
    "src/core/event.test.ts:3",
    "src/core/event.ts:2",
    "src/operations/list.ts:2",
    "src/ports/queue.ts:2",
    "src/publishers/http/http-publisher.ts:1",
    "src/relay/lane.ts:2",
    "src/sources/redis/redis-source.ts:2",
    "src/stray/a.ts:1",
  ]);
});

test("the console may take types of the API's schemas, and nothing else of the service", () => {
  const found = places(wrongConsoleImports, {
    "console/src/kit/types.ts":
      'import type { a } from "../../../src/http/schemas/a.ts";\nimport { b } from "../../../src/http/schemas/b.ts";',
    "console/src/screens/keys.tsx":
      'import type { c } from "../../../src/core/c.ts";\nimport { h } from "preact";\nimport { d } from "../kit/d.ts";',
  });
  assert.deepEqual(found, ["console/src/kit/types.ts:2", "console/src/screens/keys.tsx:1"]);
});

test("exports of the console that only a test imports are dead, and long components are found", () => {
  const lines = Array.from({ length: 70 }, (_, at) => `  const it${at} = <p>It's ${at}</p>;`);
  const texts = {
    "console/src/kit/a.ts": "export function used() {}\nexport const dead = 1;\nexport type Used = 1;",
    "console/src/kit/a.test.ts": 'import { dead } from "./a.ts";',
    "console/src/main.tsx": 'import { used, type Used } from "./kit/a.ts";\nawait import("./later.tsx");',
    "console/src/later.tsx": `export function Later() {\n${lines.join("\n")}\n}\nfunction Short() {\n}`,
  };
  assert.deepEqual(places(deadConsoleExports, texts), ["console/src/kit/a.ts:2"]);
  assert.deepEqual(places(longComponents, texts), ["console/src/later.tsx:1"]);
});

test("the engine may use injected time, never its own", () => {
  const impure = [
    'import { setTimeout as wait } from "node:timers/promises";',
    "const now = Date.now();",
    "const today = new Date();",
    "const id = crypto.randomUUID();",
    "const other = randomUUID();",
    "const text = Date() + performance.now() + Math.random();",
    "globalThis.setTimeout(f, 1);",
    "process.exit(1);",
    "AbortSignal.timeout(5);",
  ];
  const pure = "clock.setTimeout(f, 1); new Date(ms); new Date(-1); clock.now(); const setTimeouts = 1; // Date.now()";
  const found = places(impureEngine, {
    "src/core/clock.ts": impure.join("\n"),
    "src/relay/lane.ts": impure.join("\n"),
    "src/relay/lane.test.ts": impure.join("\n"),
    "src/routing/route.ts": pure,
    "src/cli/run.ts": impure.join("\n"),
  });
  const lines = [...new Set(found)].sort();
  assert.deepEqual(
    lines,
    impure.map((_, index) => `src/relay/lane.ts:${index + 1}`),
  );
});

test("shipped code may import only what its users install", () => {
  const manifest = { dependencies: { pg: "1" }, peerDependencies: { "@a/b": "1" }, devDependencies: { dev: "1" } };
  const text = 'import "pg/lib/x";\nimport "@a/b/c";\nimport "node:fs";\nimport "dev";\nimport "none";';
  const found = places(undeclaredPackages, {
    "package.json": JSON.stringify(manifest),
    "src/a.ts": text,
    "src/a.test.ts": text,
    "bench/a.ts": text,
  });
  assert.deepEqual(found, ["bench/a.ts:5", "src/a.test.ts:5", "src/a.ts:4", "src/a.ts:5"]);
});

test("long files and long functions are found, long chapters are fine", () => {
  const body = "  a();\n".repeat(69);
  const shorter = "  a();\n".repeat(58);
  assert.deepEqual(places(longFiles, { "src/a.ts": "a\n".repeat(401), "src/b.ts": "a\n".repeat(400) }), [
    "src/a.ts:400",
  ]);
  const found = places(longFunctions, {
    "src/a.ts": `x();\nfunction f(): { a: 1 } {\n${body}}\n`,
    "src/b.ts": `function f() {\n${shorter}}\nfunction g(): (a: string) => number {\n${shorter}}\n`,
    "src/c.ts": `function f() {\n${body.slice(7)}}\n`,
    "src/c.test.ts": `describe("x", () => {\n${body}});\ntest("y", () => {\n${body}});\n`,
  });
  assert.deepEqual(found, ["src/a.ts:2", "src/c.test.ts:72", "src/c.ts:1"]);
});

test("files without a way from an entry point are dead", () => {
  const found = places(deadFiles, {
    "package.json": JSON.stringify({
      exports: { "./kafka": { default: "./dist/publishers/kafka/index.js" } },
      scripts: { simulate: "node src/testing/simulate.ts" },
    }),
    "src/index.ts": 'export * from "./used.ts";',
    "src/used.ts": "",
    "src/publishers/kafka/index.ts": "",
    "src/testing/simulate.ts": "",
    "src/cli/run.ts": 'await import("../lazy.ts");',
    "src/lazy.ts": "",
    "src/only-tested.ts": "",
    "src/only-tested.test.ts": 'import "./only-tested.ts";',
  });
  assert.deepEqual(found, ["src/only-tested.ts:1"]);
});

test("exports that nobody takes are dead, also when a barrel passes them on", () => {
  const found = places(deadExports, {
    "src/index.ts": 'export { a } from "./a.ts";\nexport const own = 1;',
    "src/a.ts": "export const a = 1;\nexport const b = 2;\nexport const c = 3;\nexport type D = 1;",
    "src/barrel.ts": 'export { c as d, D } from "./a.ts";',
    "src/user.ts": 'import { d } from "./barrel.ts";',
    "src/a.test.ts": "export const free = 1;",
  });
  assert.deepEqual(found, ["src/a.ts:2", "src/a.ts:4", "src/barrel.ts:1"]);
});

test("banned words are found in text, loose types and skipped tests in code only", () => {
  const join = (...parts: string[]): string => parts.join("");
  const found = places(bannedWords, {
    "docs/a.md": `as any other: any\n${join("TO", "DO")} later\nhttps://registry.${join("npmjs", ".org")}/x`,
    "src/a.ts": `const a: any = "x as any";\n// ${join("@ts-", "ignore")}\nit.skip(b);\ntest.only(c);\nmany(d); // e: any`,
    "src/b.ts": `// see ../${"shared"}/x\nconst company: anything = 1;`,
    "package-lock.json": join("X", "XX"),
  });
  assert.deepEqual(found.sort(), [
    "docs/a.md:2",
    "docs/a.md:3",
    "src/a.ts:1",
    "src/a.ts:2",
    "src/a.ts:3",
    "src/a.ts:4",
    "src/b.ts:1",
  ]);
});

test("vague names are found in files and folders", () => {
  const bad = ["src/utils/a.ts", "src/string-helpers.ts", "src/common.test.ts", "src/lease-manager.ts"];
  const good = ["docs/common-problems.md", "src/managed/a.ts", ".npmrc"];
  const found = places(vagueNames, Object.fromEntries([...bad, ...good].map((path) => [path, ""])));
  assert.deepEqual(found.sort(), bad.map((path) => `${path}:1`).sort());
});

test("addresses in the lock file are found, links to workspaces are not", () => {
  const lock = '{\n"resolved": "https://example.com/a.tgz",\n"resolved": "examples/shop", "link": true }';
  assert.deepEqual(places(registryAddresses, { "package-lock.json": lock }), ["package-lock.json:2"]);
});

test("a requirement is done only with a test title and an existing proof", () => {
  const ids = { A: 22, B: 6, C: 8, D: 10, E: 9, F: 7, G: 7, H: 11 };
  const rows = Object.entries(ids).flatMap(([part, count]) =>
    Array.from({ length: count }, (_, index) => `| ${part}${index + 1} | text | open | - |`),
  );
  rows[0] = "| A1 | text | done | [e2e](../test/e2e.test.ts) |";
  rows[1] = "| A2 | text | done | `test/e2e.test.ts` |";
  rows[2] = "| A3 | text | done | `test/e2e.test.ts` |";
  rows[3] = "| A4 | text | partly | `test/none.test.ts` |";
  rows[4] = "| A5 | text | finished | - |";
  rows[5] = "| A1 | text | open | - |";
  const requirements = unprovedRequirements(
    repositoryOf({
      "docs/requirements.md": rows.join("\n"),
      "test/e2e.test.ts": `test(\`A1 holds on \${name}\`, run);`,
      "src/testing/contract.ts": 'export const cases = [["A2: a late settle changes nothing", run]];',
    }),
  );
  assert.deepEqual(
    requirements.map(({ what }) => what),
    [
      "A6 is not listed",
      "A1 is unknown or listed twice",
      "A3: is done and in no test title",
      "A4: the proof test/none.test.ts does not exist",
      'A5: the status is "finished", not done, partly, open',
    ],
  );
});

test("links, anchors and commands must exist", () => {
  const texts = {
    "package.json": '{ "scripts": { "bench": "x" } }',
    "docs/a.md":
      "# One, two & `three`\n[a](../src)\n[b](#one-two--three)\n[c](b.md#four)\n`[d](none)`\n[e](/x)\n[f](c.md)",
    "docs/b.md": "# Four\n```\n[x](none)\nnpm run bench -- x\nnpm run none\nnode test/none.ts\n```\n",
    "src/index.ts": "",
  };
  assert.deepEqual(places(brokenLinks, texts), ["docs/a.md:6", "docs/a.md:7"]);
  assert.deepEqual(places(unknownCommands, texts), ["docs/b.md:5", "docs/b.md:6"]);
});

test("a conflict of a merge is found in every kind of text", () => {
  const conflict = `a\n${"<".repeat(7)} HEAD\nb\n=======\nc\n${">".repeat(7)} other\n`;
  const texts = { "docs/a.md": conflict, "src/a.ts": "a << b;\n", "b.yaml": conflict };
  assert.deepEqual(places(mergeMarkers, texts), ["b.yaml:2", "b.yaml:6", "docs/a.md:2", "docs/a.md:6"]);
});

test("the changelog's form is checked line by line", () => {
  const good =
    "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2030-01-02\n\n### Fixed\n\n- A thing.\n\n## [0.1.0] - 2030-01-01\n";
  assert.deepEqual(places(changelogForm, { "CHANGELOG.md": good }), []);
  const bad = "# Changes\n## 0.1.0\n## [0.1.0] - 2030-01-01\n### New\n- A.\n### Added\n## [0.2.0] - 2030-01-02\n";
  const found = places(changelogForm, { "CHANGELOG.md": bad, "package.json": '{ "version": "0.3.0" }' });
  assert.deepEqual(
    found.sort(),
    ["1", "1", "2", "4", "6", "7"].map((line) => `CHANGELOG.md:${line}`),
  );
});

test("an adapter folder needs its main file and README, a statement file statements alone", () => {
  const adapters = {
    "src/sources/redis/redis-source.ts": "",
    "src/publishers/stdout/README.md": "",
    "src/publishers/stdout/stdout-publisher.ts": "",
  };
  assert.deepEqual(places(incompleteAdapters, adapters), ["src/sources/redis/README.md:1"]);
  const statements = {
    "src/a/claim.sql.ts": "export interface Row {}\nexport const claimSql = 1;\nexport const SHARED = 2;",
    "src/a/settle.sql.ts": "export const aSql = 1;\nexport function b() {}",
    "src/a/none.sql.ts": "",
  };
  assert.deepEqual(places(foreignInStatementFiles, statements), ["src/a/none.sql.ts:1", "src/a/settle.sql.ts:2"]);
});

test("tests that check nothing or sleep are found", () => {
  const checked =
    'test("a", () => { assert.ok(1); });\ntest("b", run);\nif (/x/.test("y")) z();\ntest("c", () => { d(); });';
  assert.deepEqual(places(testsWithoutCheck, { "src/a.test.ts": checked }), ["src/a.test.ts:4"]);
  const lines = [
    "await sleep(5);",
    "await sleep(5); // why: the broker offers no signal",
    "// why: the broker offers no signal",
    "setTimeout(f, 5);",
    "await clock.sleep(5);",
    "setTimeout(f, 5);",
  ];
  assert.deepEqual(places(testsThatSleep, { "src/a.test.ts": lines.join("\n") }), [
    "src/a.test.ts:1",
    "src/a.test.ts:6",
  ]);
});

test("names of the sources hold no word that the glossary rejects", () => {
  const found = places(namesBesideGlossary, {
    "docs/glossary.md":
      "| term | meaning | not |\n|---|---|---|\n| lease | Time to live | tenure, term |\n| run | One pass | |\n",
    "src/relay/tenure.ts": "",
    "src/relay/lane.ts":
      'const oldTenure = 1; // tenure\nclass A {\n  renewTenure(): void {}\n  readonly #tenures = "tenure";\n}',
    "src/relay/lane.test.ts": "const tenure = 1;",
    "console/src/a.ts": "function Tenure() {}\nconst terms = 1;",
  });
  assert.deepEqual(found, [
    "console/src/a.ts:1",
    "src/relay/lane.ts:1",
    "src/relay/lane.ts:3",
    "src/relay/tenure.ts:1",
  ]);
});
