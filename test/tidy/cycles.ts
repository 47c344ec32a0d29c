import { isTestFile, type Offence, type Repository } from "./repository.ts";

/**
 * Files of src that import each other, directly or through others. `import type` does not count: it loads nothing, so
 * it cannot make a module see another one half loaded. Each cycle is reported once, at the first file that is found in it.
 */
export function importCycles(repository: Repository): Offence[] {
  const targets = new Map<string, readonly { readonly target: string; readonly line: number }[]>();
  for (const { imports, path } of repository.modules()) {
    if (!path.startsWith("src/") || isTestFile(path)) continue;
    targets.set(
      path,
      imports.flatMap(({ isType, line, target }) => (isType || target === undefined ? [] : [{ target, line }])),
    );
  }
  const offences: Offence[] = [];
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]): void => {
    if (done.has(path)) return;
    const here = [...way, path];
    for (const { line, target } of targets.get(path) ?? []) {
      const start = here.indexOf(target);
      if (start < 0) visit(target, here);
      else offences.push({ file: path, line, what: `closes a cycle: ${[...here.slice(start), target].join(" -> ")}` });
    }
    done.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  return offences;
}
