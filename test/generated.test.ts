import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";
import { generatedDocuments } from "./generated-documents.ts";

for (const [file, text] of Object.entries(generatedDocuments())) {
  test(`A14 A21: ${file} is what the code says`, () => {
    const there = readFileSync(resolve(import.meta.dirname, "..", file), "utf8");
    assert.equal(there, text, `${file} is out of date: npm run generate writes it anew`);
  });
}
