import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Module, parseModule } from "./module.ts";

/** The files that a rule looks at: the ones of this repository, or a few written down in a test of the rule. */
export interface Repository {
  /** Paths from the root, with forward slashes, sorted. */
  readonly files: readonly string[];
  /** True for files and for folders that hold one. */
  has(path: string): boolean;
  text(path: string): string;
  /** All TypeScript files, parsed once. */
  modules(): readonly Module[];
  manifest(path?: string): Manifest;
  /** The manifest of an installed package; null where there is none. */
  installed(name: string): Manifest | null;
}

export interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly bin?: string | Readonly<Record<string, string>>;
  readonly exports?: unknown;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

export interface Offence {
  readonly file: string;
  readonly line: number;
  readonly what: string;
}

const foldersNotOurs = new Set([".git", "node_modules", "dist", "coverage"]);

/** What git tracks or would track; without git (an unpacked archive) everything but installed and built files. */
export function openRepository(root: string): Repository {
  const git = spawnSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 << 20,
  });
  const listed = git.status === 0 ? git.stdout.split("\0").filter((path) => path !== "") : walk(root, "");
  const files = listed.filter((path) => existsSync(join(root, path)));
  return repositoryOver([...new Set(files)], (path) => readFileSync(join(root, path), "utf8"));
}

export function repositoryOf(texts: Readonly<Record<string, string>>): Repository {
  return repositoryOver(Object.keys(texts), (path) => texts[path] ?? "");
}

function repositoryOver(paths: readonly string[], read: (path: string) => string): Repository {
  const files = [...paths].sort();
  const known = new Set(files.flatMap(withFolders));
  const texts = new Map<string, string>();
  let modules: readonly Module[] | undefined;
  const text = (path: string): string => {
    const cached = texts.get(path) ?? read(path);
    texts.set(path, cached);
    return cached;
  };
  return {
    files,
    has: (path) => known.has(path.replace(/\/$/, "")),
    text,
    modules: () => {
      modules ??= files.filter((path) => path.endsWith(".ts")).map((path) => parseModule(path, text(path)));
      return modules;
    },
    manifest: (path = "package.json") => (known.has(path) ? (JSON.parse(text(path)) as Manifest) : {}),
    installed: (name) => installedManifest(name, read),
  };
}

function installedManifest(name: string, read: (path: string) => string): Manifest | null {
  try {
    return JSON.parse(read(`node_modules/${name}/package.json`)) as Manifest;
  } catch {
    return null;
  }
}

function withFolders(path: string): string[] {
  const parts = path.split("/");
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

function walk(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    if (foldersNotOurs.has(entry.name)) return [];
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    return entry.isDirectory() ? walk(root, path) : [path];
  });
}

/** The package.json that governs a file: the nearest one above it. */
export function manifestPathFor(repository: Repository, path: string): string {
  const parts = path.split("/").slice(0, -1);
  for (let depth = parts.length; depth > 0; depth--) {
    const candidate = [...parts.slice(0, depth), "package.json"].join("/");
    if (repository.has(candidate)) return candidate;
  }
  return "package.json";
}

export function isTestFile(path: string): boolean {
  return path.endsWith(".test.ts");
}

export function lineOfOffset(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) line++;
  return line;
}
