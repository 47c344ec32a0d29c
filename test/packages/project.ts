import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import type { Manifest } from "../tidy/repository.ts";

const root = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

/** With `skipLibCheck: false` a compiler reads every declaration to the last line. */
const STRICT = {
  ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false },
  ...{ noEmit: true, target: "es2022", lib: ["es2022"], types: ["node"] },
};

const MODULES = {
  nodenext: { module: "nodenext", moduleResolution: "nodenext" },
  bundler: { module: "esnext", moduleResolution: "bundler" },
} as const;

export interface Compilation {
  readonly compiler: string;
  /** What is imported: `outbox-relay/kafka`. */
  readonly entries: readonly string[];
  readonly resolution?: keyof typeof MODULES;
  /** CommonJS with `import = require`. */
  readonly type?: "module" | "commonjs";
}

/** An application that has packages of ours unpacked in its `node_modules`. */
export class Project {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  async unpack(name: string, tarball: string): Promise<void> {
    const target = join(this.folder, "node_modules", name);
    mkdirSync(target, { recursive: true });
    await run("tar", ["xf", tarball, "-C", target, "--strip-components=1"]);
  }

  manifest(name = "outbox-relay"): Manifest {
    return JSON.parse(readFileSync(join(this.folder, "node_modules", name, "package.json"), "utf8")) as Manifest;
  }

  /** Every entry by the name under which an application imports it. */
  entries(name = "outbox-relay"): string[] {
    return Object.keys(this.manifest(name).exports as object).map((entry) => `${name}${entry.slice(1)}`);
  }

  linkTypesOfNode(): void {
    this.#link(["@types/node"]);
  }

  /** What npm would put beside the package: its dependencies with theirs, and the peers that the project has. */
  link(peers: readonly string[]): void {
    this.#link([...Object.keys(this.manifest().dependencies ?? {}), ...peers]);
  }

  #link(wanted: readonly string[]): void {
    const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
      readonly packages: Readonly<Record<string, Manifest>>;
    };
    const waiting = [...wanted];
    const seen = new Set<string>();
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
      if (seen.has(name)) continue;
      seen.add(name);
      const place = join(this.folder, "node_modules", name);
      mkdirSync(dirname(place), { recursive: true });
      try {
        symlinkSync(join(root, "node_modules", name), place);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      waiting.push(...Object.keys(lock.packages[`node_modules/${name}`]?.dependencies ?? {}));
    }
  }

  /** What the compiler has against a program that imports the entries. */
  async faults({ compiler, entries, resolution = "nodenext", type = "module" }: Compilation): Promise<string[]> {
    const names = entries.map((_, at) => `entry${at}`);
    const imports = entries.map((entry, at) =>
      type === "module" ? `import * as entry${at} from "${entry}";\n` : `import entry${at} = require("${entry}");\n`,
    );
    const compilerOptions = { ...STRICT, ...MODULES[resolution] };
    this.#write("package.json", JSON.stringify({ private: true, type }));
    this.#write("tsconfig.json", JSON.stringify({ compilerOptions, files: ["index.ts"] }));
    this.#write("index.ts", `${imports.join("")}export { ${names.join(", ")} };\n`);
    const { stdout } = await run(process.execPath, [compiler, "-p", this.folder, "--pretty", "false"]).catch(
      (failed: { readonly stdout: string }) => failed,
    );
    return stdout.split("\n").filter((line) => /error TS/.test(line));
  }

  /** The names that each entry exports to a program of this kind, under this Node. */
  async exportsOf(
    node: string,
    type: "module" | "commonjs",
    entries: readonly string[],
  ): Promise<Readonly<Record<string, readonly string[]>>> {
    const load = type === "module" ? "await import(entry)" : "require(entry)";
    const file = type === "module" ? "main.mjs" : "main.cjs";
    this.#write(
      file,
      `const found = {};
for (const entry of ${JSON.stringify(entries)}) found[entry] = Object.keys(${load}).filter((name) => name !== "__esModule").sort();
console.log(JSON.stringify(found));\n`,
    );
    const { stdout } = await run(node, [join(this.folder, file)]);
    return JSON.parse(stdout) as Record<string, string[]>;
  }

  #write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
  }
}
