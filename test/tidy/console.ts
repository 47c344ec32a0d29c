import { posix } from "node:path";
import { isTestFile, lineOfOffset, type Offence, type Repository } from "./repository.ts";

const clause = /^(import|export)\s+(type\s+)?([^"';]*?)\s*from\s+"([^"]+)";/gm;
const declared = /^export\s+(?:async\s+)?(?:function|const|interface|type|class)\s+(\w+)/gm;
const component = /^(?:export\s+)?(?:async\s+)?function\s+(\w+)[\s\S]*?^}/gm;
const functionLinesMax = 70;

/** Its files with marks in them are no modules to the other rules, whose reader knows no JSX. */
function sources(repository: Repository): string[] {
  return repository.files.filter((path) => /^console\/.*\.tsx?$/.test(path));
}

/** The console knows the HTTP API and nothing else of the service: only types of its schemas, which a build leaves out. */
export function wrongConsoleImports(repository: Repository): Offence[] {
  return sources(repository).flatMap((file) => {
    const text = repository.text(file);
    return [...text.matchAll(clause)].flatMap((match) => {
      const [, , isType, , specifier = ""] = match;
      const target = specifier.startsWith(".") ? posix.join(posix.dirname(file), specifier) : null;
      if (target === null || target.startsWith("console/")) return [];
      if (isType !== undefined && target.startsWith("src/http/schemas/")) return [];
      if (isTestFile(file) && target.startsWith("test/servers/")) return [];
      return [{ file, line: lineOfOffset(text, match.index), what: `the console may not import ${target}` }];
    });
  });
}

/** What only a test imports is dead as well. */
export function deadConsoleExports(repository: Repository): Offence[] {
  const shipped = sources(repository).filter((file) => !isTestFile(file));
  const taken = new Set<string>();
  for (const file of shipped) {
    for (const [, , , names = "", specifier = ""] of repository.text(file).matchAll(clause)) {
      const target = posix.join(posix.dirname(file), specifier);
      for (const name of names.match(/\w+/g) ?? []) taken.add(`${target} ${name}`);
    }
    // Loaded when it is needed: then all of it counts as used.
    for (const [, specifier = ""] of repository.text(file).matchAll(/import\("([^"]+)"\)/g)) {
      taken.add(`${posix.join(posix.dirname(file), specifier)} *`);
    }
  }
  return shipped
    .filter((file) => file.startsWith("console/src/") && !taken.has(`${file} *`))
    .flatMap((file) => {
      const text = repository.text(file);
      return [...text.matchAll(declared)]
        .filter(([, name]) => !taken.has(`${file} ${name}`))
        .map((match) => ({ file, line: lineOfOffset(text, match.index), what: `nobody imports ${match[1]}` }));
    });
}

/** The marks of a component count as its lines: who cannot see all of it at once cannot see what it shows. */
export function longComponents(repository: Repository): Offence[] {
  return sources(repository)
    .filter((file) => file.endsWith(".tsx"))
    .flatMap((file) => {
      const text = repository.text(file);
      return [...text.matchAll(component)].flatMap((match) => {
        const lines = match[0].split("\n").length;
        if (lines <= functionLinesMax) return [];
        const what = `${lines} lines, at most ${functionLinesMax}: ${match[1]}`;
        return [{ file, line: lineOfOffset(text, match.index), what }];
      });
    });
}
