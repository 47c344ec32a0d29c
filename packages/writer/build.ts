// Builds the package from the sources that outbox-relay is built from: two entries that share what they have in common,
// and of the declarations those that the entries reach.
import { execFile } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { keepReached } from "./declarations.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const TARGET = join(import.meta.dirname, "dist");
const ENTRIES = ["outbox/index", "inbox/index"];
/** One code of the catalogue of errors with its entry. */
const ENTRY = /^ {2}([A-Z_]+): \{(?:.*\},\n|\n(?: {4}.*\n)+ {2}\},\n)/gm;

await rm(TARGET, { recursive: true, force: true });
const OPTIONS: BuildOptions = {
  absWorkingDir: ROOT,
  entryPoints: ENTRIES.map((entry) => join(ROOT, "src", `${entry}.ts`)),
  outbase: join(ROOT, "src"),
  outdir: TARGET,
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node22",
  minify: true,
  // Asked for at run time, and done without where it is missing.
  external: ["@opentelemetry/api"],
  tsconfigRaw: {},
  logLevel: "warning",
};
const { metafile } = await build({ ...OPTIONS, metafile: true, write: false });
await build({ ...OPTIONS, plugins: [onlyErrorsOf(Object.keys(metafile.inputs))] });
await declare();

async function declare(): Promise<void> {
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  await promisify(execFile)(process.execPath, [compiler, "-p", import.meta.dirname]);
  await keepReached(
    TARGET,
    ENTRIES.map((entry) => `${entry}.d.ts`),
  );
}

/** The catalogue of errors holds those of the whole relay, in many words. Most of them cannot happen in this package. */
function onlyErrorsOf(files: readonly string[]): Plugin {
  const catalogue = "src/core/errors.ts";
  const textOf = (file: string) => readFile(join(ROOT, file), "utf8");
  return {
    name: "only-own-errors",
    setup: ({ onLoad }) =>
      onLoad({ filter: /src\/core\/errors\.ts$/ }, async () => {
        const users = await Promise.all(files.filter((file) => file !== catalogue).map(textOf));
        const own = users.join("\n");
        const contents = (await textOf(catalogue)).replace(ENTRY, (entry, code) =>
          own.includes(`"${code}"`) ? entry : "",
        );
        return { contents, loader: "ts" };
      }),
  };
}
