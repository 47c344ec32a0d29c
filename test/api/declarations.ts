import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Identifier, Node } from "typescript/unstable/ast";
import { API, type Checker, type Symbol as DeclaredSymbol, type Project, SymbolFlags } from "typescript/unstable/sync";
import { createScratch } from "../servers/scratch.ts";

const root = resolve(import.meta.dirname, "../..");

/** One exported name of an entry. */
export interface ExportedName {
  readonly name: string;
  readonly symbol: DeclaredSymbol;
  readonly nodes: readonly Node[];
  /** The declaring files, from the folder of declarations: `core/event.d.ts`. */
  readonly files: readonly string[];
}

/** One entry of the package, as `npm pack` would declare it. */
export interface Entry {
  /** `outbox-relay/kafka`. */
  readonly name: string;
  readonly exports: readonly ExportedName[];
}

/** The declarations of the package, with what a compiler knows of them. */
export interface Declarations {
  readonly entries: readonly Entry[];
  /** What an identifier means, with aliases resolved. */
  meant(identifier: Identifier): DeclaredSymbol | undefined;
  /** Where this package declares it, from the folder of declarations; undefined for what others declare. */
  placeOf(symbol: DeclaredSymbol): string | undefined;
  close(): void;
}

/** Emits the declarations of every entry of package.json, and opens them. Takes seconds. */
export function openDeclarations(): Declarations {
  const scratch = createScratch("declarations", "memory");
  const types = join(scratch.path, "types");
  mkdirSync(types);
  symlinkSync(join(root, "node_modules"), join(scratch.path, "node_modules"));
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const options = ["-p", join(root, "tsconfig.build.json"), "--emitDeclarationOnly", "--outDir", types];
  execFileSync(process.execPath, [compiler, ...options], { stdio: ["ignore", "inherit", "inherit"] });
  const paths = entryFiles().map(([name, file]) => [name, join(types, file)] as const);
  const config = join(scratch.path, "tsconfig.json");
  const compilerOptions = { module: "nodenext", target: "es2024", types: ["node"], strict: true, skipLibCheck: true };
  writeFileSync(config, JSON.stringify({ compilerOptions, files: paths.map(([, path]) => path) }));
  const api = new API({ cwd: scratch.path });
  const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
  if (project === undefined) throw new Error(`The compiler opened no project for ${config}`);
  const { checker } = project;
  const meant = (identifier: Identifier) => {
    const symbol = checker.getSymbolAtLocation(identifier);
    return symbol === undefined ? undefined : withoutAlias(checker, symbol);
  };
  return {
    entries: paths.map(([name, path]) => ({ name, exports: exportsOf(project, path, types) })),
    meant,
    placeOf: (symbol) => filesOf(symbol, types)[0],
    close: () => {
      api.close();
      void scratch.remove();
    },
  };
}

function entryFiles(): [name: string, file: string][] {
  const { exports: entries, name } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly name: string;
    readonly exports: Readonly<Record<string, { readonly types: string }>>;
  };
  return Object.entries(entries).map(([entry, { types }]) => [
    `${name}${entry.slice(1)}`,
    types.slice("./dist/".length),
  ]);
}

function exportsOf(project: Project, path: string, types: string): ExportedName[] {
  const { checker, program } = project;
  const file = program.getSourceFile(path);
  const entry = file === undefined ? undefined : checker.getSymbolAtLocation(file);
  if (entry === undefined) throw new Error(`${path} exports nothing`);
  return checker.getExportsOfModule(entry).map((exported) => {
    const symbol = withoutAlias(checker, exported);
    const nodes = symbol.declarations.flatMap((handle) => handle.resolve(project) ?? []);
    return { name: exported.name, symbol, nodes, files: filesOf(symbol, types) };
  });
}

function withoutAlias(checker: Checker, symbol: DeclaredSymbol): DeclaredSymbol {
  return (symbol.flags & SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol);
}

function filesOf(symbol: DeclaredSymbol, types: string): string[] {
  const paths = symbol.declarations.map(({ path }) => String(path));
  return paths.filter((path) => path.startsWith(`${types}/`)).map((path) => path.slice(types.length + 1));
}
