// What an application can import: emitted as npm would publish it, and read by the compiler.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { collidingNames } from "./api/collisions.ts";
import { type Declarations, openDeclarations } from "./api/declarations.ts";
import { missingExports } from "./api/named-types.ts";
import { apiReference } from "./api/reference.ts";

const root = resolve(import.meta.dirname, "..");

let declarations: Declarations;

before(() => {
  declarations = openDeclarations();
});
after(() => declarations?.close());

test("H4 every type that an entry names can be imported, from it or from outbox-relay", () => {
  assert.ok(declarations.entries.length > 10);
  const missing = missingExports(declarations);
  assert.equal(missing.length, 0, `export these where they are named:\n${missing.join("\n")}`);
});

test("H4 A21 the reference of the API is what the declarations say, and has no page of an entry that is gone", () => {
  const pages = apiReference(declarations);
  for (const [file, text] of Object.entries(pages)) {
    assert.equal(
      readFileSync(resolve(root, file), "utf8"),
      text,
      `${file} is out of date: npm run generate writes it anew`,
    );
  }
  const there = globSync("docs/reference/api/*", { cwd: root });
  assert.deepEqual(there.sort(), Object.keys(pages).sort());
});

test("H4 no entry exports a bare name that collides with those of an application", () => {
  assert.deepEqual(collidingNames(declarations.entries), []);
});
