// Writes the files that are made from the code. Tests compare them with what this would write.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { openDeclarations } from "./api/declarations.ts";
import { apiReference } from "./api/reference.ts";
import { generatedDocuments } from "./generated-documents.ts";

const root = resolve(import.meta.dirname, "..");

/** First what the declarations depend on. */
write(generatedDocuments());
const declarations = openDeclarations();
write(apiReference(declarations));
declarations.close();

function write(files: Readonly<Record<string, string>>): void {
  for (const [file, text] of Object.entries(files)) {
    const path = resolve(root, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    process.stdout.write(`${file}\n`);
  }
}
