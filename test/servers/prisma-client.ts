import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import type { GenerateClientOptions } from "@prisma/client-generator-ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** Its form for `import` cannot be loaded by Node: it names files without their endings. */
const require = createRequire(import.meta.url);
const { generateClient } = require("@prisma/client-generator-ts") as typeof import("@prisma/client-generator-ts");
const { getDMMF } = require("@prisma/get-dmmf") as typeof import("@prisma/get-dmmf");

/**
 * What `prisma generate` writes into `outputDir`, by the same generator: its command line alone would bring 230 MB of
 * packages, and fetches an engine that the client with a driver adapter does not use.
 */
export async function generatePrismaClient(schemaPath: string, outputDir: string): Promise<void> {
  const datamodel = readFileSync(schemaPath, "utf8");
  const manifest = readFileSync(join(ROOT, "node_modules/@prisma/client/package.json"), "utf8");
  const { version } = JSON.parse(manifest) as { readonly version: string };
  const from = { value: "prisma-client", fromEnvVar: null };
  const options = {
    datamodel,
    schemaPath,
    outputDir,
    runtimeBase: "@prisma/client/runtime",
    dmmf: getDMMF({ datamodel }),
    generator: {
      ...{ name: "client", provider: from, output: { value: outputDir, fromEnvVar: null } },
      ...{ config: {}, previewFeatures: [], binaryTargets: [] },
    },
    datasources: [{ name: "db", provider: "postgresql", activeProvider: "postgresql", schemas: [] }],
    binaryPaths: {},
    engineVersion: version,
    clientVersion: version,
    activeProvider: "postgresql",
    target: "nodejs",
    generatedFileExtension: "ts",
    importFileExtension: "ts",
    moduleFormat: "esm",
    tsNoCheckPreamble: true,
    compilerBuild: "fast",
  };
  mkdirSync(dirname(outputDir), { recursive: true });
  await generateClient(options as unknown as GenerateClientOptions);
}

/** A folder that a generated client can be loaded from: an ES module beside this project's packages. */
export function writePrismaProject(folder: string, schema: string): string {
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const path = join(folder, "schema.prisma");
  writeFileSync(path, schema);
  return path;
}
