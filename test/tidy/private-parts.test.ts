import assert from "node:assert/strict";
import { test } from "node:test";
import { privateParts } from "./private-parts.ts";
import { repositoryOf } from "./repository.ts";

const packages = {
  "node_modules/open/package.json": '{ "name": "open" }',
  "node_modules/@a/listed/package.json":
    '{ "exports": { ".": "./x.js", "./sub": "./s.js", "./lib/*.js": "./l/*.js", "./lib/own.js": null } }',
  "node_modules/single/package.json": '{ "exports": "./dist/index.js" }',
};

const places = (text: string) =>
  privateParts(repositoryOf({ ...packages, "src/a.ts": text })).map(({ line, what }) => `${line} ${what}`);

test("a path below a package is found unless the package exports or documents it", () => {
  const text = [
    'import { a } from "open/dist/a.js";',
    'import type { B } from "@a/listed/dist/b.js";',
    'const c = await import("single/dist/c.js");',
    'const d = clientRequire("open/lib/d");',
    'import "open"; import "@a/listed"; import "@a/listed/sub"; import "@a/listed/lib/e.js"; import "single";',
    'import "node:fs/promises"; import "../dist/f.js"; import "absent/dist/g.js"; require("ajv/dist/2020.js");',
  ];
  assert.deepEqual(places(text.join("\n")).sort(), [
    "1 imports open/dist/a.js",
    "2 imports @a/listed/dist/b.js",
    "3 imports single/dist/c.js",
    "4 imports open/lib/d",
  ]);
});

test("names and members that a library keeps to itself are found, in code alone", () => {
  const text = [
    'import { pino, symbols } from "pino";',
    "pino.symbols.asJsonSym;",
    "registry._map.get(a);",
    'registry?.["_idmap"];',
    "client.scriptsSet[name];",
    "Object.getOwnPropertySymbols(logger);",
    'line._aws; this.own; _own; ["_text"]; const { _unused } = a; "x._y"; // x._z',
    'import { symbols } from "./own.ts";',
  ];
  assert.deepEqual(places(text.join("\n")).sort(), [
    "1 uses symbols",
    "2 uses pino.symbols",
    "3 uses _map",
    "4 uses _idmap",
    "5 uses scriptsSet",
    "6 uses getOwnPropertySymbols",
  ]);
});
