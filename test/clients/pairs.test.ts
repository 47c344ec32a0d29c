import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, test } from "node:test";
import { CLIENTS } from "./pairs.ts";
import { compatibilityDocument, rowsIn } from "./table.ts";

const root = resolve(import.meta.dirname, "../..");
const document = readFileSync(join(root, "docs/reference/compatibility.md"), "utf8");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const peers = manifest.peerDependencies as Readonly<Record<string, string>>;
const specs = CLIENTS.flatMap(({ pairs }) => pairs.flat());

describe("the versions of clients that are tested", () => {
  test("H3 begin with the oldest of each range, and end with the one that all tests run with", () => {
    for (const [name, range] of Object.entries(peers)) {
      const oldest = /\d+\.\d+\.\d+/.exec(range)?.[0];
      assert.ok(specs.includes(`${name}@${oldest}`), `${name}: ${oldest} is in the range and is not tested`);
      const newest = specs.findLast((spec) => spec.startsWith(`${name}@`))?.slice(name.length + 1) ?? "";
      const present = String(manifest.devDependencies[name]);
      assert.ok(
        `${present}.`.startsWith(`${newest}.`),
        `${name}: all tests run with ${present}, the last pair is ${newest}`,
      );
    }
  });

  test("H3 all passed, and the document names them with the ranges of package.json", () => {
    const rows = rowsIn(document);
    for (const pair of CLIENTS.flatMap(({ pairs }) => pairs)) {
      assert.match(rows.get(pair.join(" ")) ?? "", /\| \d+ passed \|$/, `npm run test:clients: ${pair.join(" ")}`);
    }
    assert.equal(document, compatibilityDocument(CLIENTS, rows, peers));
  });

  test("the suites are there", () => {
    for (const path of CLIENTS.flatMap(({ suites }) => suites)) assert.ok(existsSync(join(root, path)), path);
  });
});
