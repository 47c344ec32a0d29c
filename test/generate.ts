// Writes the documents that are made from the code. A test compares them with what this would write.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { generatedDocuments } from "./generated-documents.ts";

const root = resolve(import.meta.dirname, "..");

for (const [file, text] of Object.entries(generatedDocuments())) {
  const path = resolve(root, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  process.stdout.write(`${file}\n`);
}
