// Bundles the console: `npm run build` writes it to dist/console; a service that runs from the sources does it in memory.
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { type BuildOptions, build, type OutputFile, stop } from "esbuild";

interface ConsoleFile {
  readonly name: string;
  readonly body: Uint8Array;
}

const FOLDER = import.meta.dirname;
const TARGET = ["chrome123", "firefox120", "safari17.5"];

/** All files of the console. Names with a hash in them never change what they hold. */
export async function bundleConsole(): Promise<readonly ConsoleFile[]> {
  const made = await bundled({
    entryPoints: { console: join(FOLDER, "src/main.tsx"), style: join(FOLDER, "styles/console.css") },
    outdir: "/console",
    bundle: true,
    splitting: true,
    format: "esm",
    minify: true,
    target: TARGET,
    jsx: "automatic",
    jsxImportSource: "preact",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    tsconfigRaw: {},
    logLevel: "silent",
  });
  const files = made.map(({ path, contents }) => ({ name: basename(path), body: contents }));
  const icon = await readFile(join(FOLDER, "icon.svg"));
  const iconName = `icon-${createHash("sha256").update(icon).digest("hex").slice(0, 8)}.svg`;
  const nameOf = (start: string, end: string): string =>
    files.find(({ name }) => name.startsWith(start) && name.endsWith(end))?.name ?? "";
  const page = (await readFile(join(FOLDER, "index.html"), "utf8"))
    .replace("console/console.js", `console/${nameOf("console-", ".js")}`)
    .replace("console/console.css", `console/${nameOf("style-", ".css")}`)
    .replace("console/icon.svg", `console/${iconName}`);
  return [...files, { name: iconName, body: icon }, { name: "index.html", body: Buffer.from(page) }];
}

let working = 0;

/** The bundler is a process of its own: the last one to use it sends it away, so that none is left behind. */
async function bundled(options: BuildOptions): Promise<readonly OutputFile[]> {
  working += 1;
  try {
    const { outputFiles } = await build({ ...options, write: false });
    return outputFiles;
  } finally {
    working -= 1;
    if (working === 0) await stop();
  }
}

if (import.meta.main) {
  const folder = join(FOLDER, "../dist/console");
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const { name, body } of await bundleConsole()) await writeFile(join(folder, name), body);
}
