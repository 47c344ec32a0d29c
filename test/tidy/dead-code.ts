import type { Module } from "./module.ts";
import { isTestFile, type Offence, type Repository } from "./repository.ts";

export function deadFiles(repository: Repository): Offence[] {
  const modules = new Map(repository.modules().map((module) => [module.path, module]));
  const reached = new Set<string>();
  const waiting = [...entryPoints(repository)];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const module = modules.get(path);
    if (module === undefined || reached.has(path)) continue;
    reached.add(path);
    for (const { target } of module.imports) if (target !== undefined) waiting.push(target);
  }
  return [...modules.keys()]
    .filter((path) => path.startsWith("src/") && !isTestFile(path) && !path.endsWith(".d.ts") && !reached.has(path))
    .map((file) => ({ file, line: 1, what: "no entry point leads here" }));
}

export function deadExports(repository: Repository): Offence[] {
  const modules = repository.modules();
  const published = publishedFiles(repository);
  const taken = new Map<string, Set<string>>();
  const passedOn = new Map<string, { by: string; origin: string; name: string }[]>();
  for (const module of modules) {
    for (const { target, names, reexported } of module.imports) {
      if (target === undefined || reexported) continue;
      taken.set(target, new Set([...(taken.get(target) ?? []), ...names]));
    }
    for (const { from, origin, name } of module.exports) {
      if (from === undefined || origin === undefined) continue;
      passedOn.set(from, [...(passedOn.get(from) ?? []), { by: module.path, origin, name }]);
    }
  }
  /** A name that is passed on counts as used when somebody takes it from there. */
  const isUsed = (path: string, name: string, seen: readonly string[]): boolean => {
    if (published.has(path) || taken.get(path)?.has(name) || taken.get(path)?.has("*")) return true;
    if (seen.includes(path)) return false;
    return (passedOn.get(path) ?? []).some(({ by, origin, name: outside }) => {
      if (origin === "*") return isUsed(by, outside === "*" ? name : outside, [...seen, path]);
      return origin === name && isUsed(by, outside, [...seen, path]);
    });
  };
  return modules
    .filter(isShippedSource)
    .flatMap((module) =>
      module.exports
        .filter(({ name }) => name !== "*" && !isUsed(module.path, name, []))
        .map(({ name, line }) => ({ file: module.path, line, what: `nobody imports ${name}` })),
    );
}

function isShippedSource({ path }: Module): boolean {
  return path.startsWith("src/") && !isTestFile(path);
}

function entryPoints(repository: Repository): Set<string> {
  const { scripts, bin } = repository.manifest();
  const commands = [...Object.values(scripts ?? {}), ...(typeof bin === "string" ? [bin] : Object.values(bin ?? {}))];
  const named = commands.flatMap((command) => command.match(/[\w./-]+\.[jt]s\b/g) ?? []).map(sourceOf);
  const commandLine = repository.files.filter((path) => /^src\/cli\/[^/]+\.ts$/.test(path));
  return new Set([...publishedFiles(repository), ...commandLine, ...named]);
}

/** The files whose exports users can import. */
function publishedFiles(repository: Repository): Set<string> {
  const exported = JSON.stringify(repository.manifest().exports ?? {}).match(/[\w./-]+\.js\b/g) ?? [];
  return new Set(["src/index.ts", "src/testing/index.ts", ...exported.map(sourceOf)]);
}

function sourceOf(path: string): string {
  return path.replace(/^\.\//, "").replace(/^dist\/(.*)\.js$/, "src/$1.ts");
}
