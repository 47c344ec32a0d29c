// Builds the package from the sources that outbox-relay is built from: two entries that share what they have in common,
// and of the declarations those that the entries reach.
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { keepReached } from "./declarations.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const TARGET = join(import.meta.dirname, "dist");
const ENTRIES = ["outbox/index", "inbox/without-adapters"];
const CATALOGUE = "src/core/errors.ts";
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
const codes = await ownCodes(Object.keys(metafile.inputs));
await build({ ...OPTIONS, plugins: [onlyErrors(codes), withoutIndents()] });
await declare();

async function declare(): Promise<void> {
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  await promisify(execFile)(process.execPath, [compiler, "-p", import.meta.dirname]);
  const errors = join(TARGET, "core/errors.d.ts");
  const union = [...codes].map((code) => JSON.stringify(code)).join(" | ");
  await writeFile(errors, (await readFile(errors, "utf8")).replace("keyof typeof ERROR_CATALOGUE", union));
  await keepReached(
    TARGET,
    ENTRIES.map((entry) => `${entry}.d.ts`),
  );
}

/** The catalogue of errors holds those of the whole relay, in many words. Most of them cannot happen in this package. */
async function ownCodes(files: readonly string[]): Promise<ReadonlySet<string>> {
  const users = await Promise.all(files.filter((file) => file !== CATALOGUE).map(textOf));
  const own = users.join("\n");
  const all = [...(await textOf(CATALOGUE)).matchAll(ENTRY)].map(([, code = ""]) => code);
  return new Set(all.filter((code) => own.includes(`"${code}"`)));
}

function onlyErrors(codes: ReadonlySet<string>): Plugin {
  return {
    name: "only-own-errors",
    setup: ({ onLoad }) =>
      onLoad({ filter: /src\/core\/errors\.ts$/ }, async () => {
        const contents = (await textOf(CATALOGUE)).replace(ENTRY, (entry, code) => (codes.has(code) ? entry : ""));
        return { contents, loader: "ts" };
      }),
  };
}

/** Of SQL, which is text to the bundler. No value in it has several lines. */
function withoutIndents(): Plugin {
  return {
    name: "without-indents",
    setup: ({ onLoad }) =>
      onLoad({ filter: /src\/(?:outbox|inbox)\/[\w.-]+\.ts$/ }, async ({ path }) => ({
        contents: (await readFile(path, "utf8")).replaceAll(/\n +/g, "\n"),
        loader: "ts",
      })),
  };
}

async function textOf(file: string): Promise<string> {
  return await readFile(join(ROOT, file), "utf8");
}
