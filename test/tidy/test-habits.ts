import type { Module } from "./module.ts";
import { isTestFile, type Offence, type Repository } from "./repository.ts";
import { pairBrackets } from "./sizes.ts";

const caseCall = /(?<![\w$.])(?:(?:t|context)\s*\.\s*)?(?:test|it)\s*\(/g;
const chapterOrCaseCall = /(?<![\w$.])(?:(?:t|context)\s*\.\s*)?(?:test|it|describe|suite)\s*\(\s*(?=["'`])/g;
const checks = /assert|expect|check|verify|\bt\s*\./i;

/** Best effort: a body that calls nothing that sounds like a check proves nothing. */
export function testsWithoutCheck(repository: Repository): Offence[] {
  return repository
    .modules()
    .filter(({ path }) => isTestFile(path))
    .flatMap((module) => {
      const { closing } = pairBrackets(module.code);
      return [...module.code.matchAll(caseCall)].flatMap((match) => {
        const open = match.index + match[0].length - 1;
        const call = module.code.slice(open, closing.get(open));
        if (!/=>|\bfunction\b/.test(call) || checks.test(call)) return [];
        return [{ file: module.path, line: module.lineAt(match.index), what: "checks nothing" }];
      });
    });
}

const waits = /(?<![\w$.])(?:globalThis\s*\.\s*|timers\s*\.\s*)?(?:setTimeout|sleep)\s*\(/g;
const reason = /\/\/ why: \S/;

export function testsThatSleep(repository: Repository): Offence[] {
  return repository
    .modules()
    .filter(({ path }) => isTestFile(path))
    .flatMap((module) => {
      const timers = module.imports.filter(({ specifier }) => specifier === "node:timers/promises");
      const lines = [
        ...[...module.code.matchAll(waits)].map((match) => module.lineAt(match.index)),
        ...timers.map(({ line }) => line),
      ];
      const reasoned = linesWithReason(module);
      return lines
        .filter((line) => !reasoned.has(line))
        .map((line) => ({ file: module.path, line, what: module.text.split("\n")[line - 1]?.trim() ?? "" }));
    });
}

/** The comment may end the line or stand on the line above. */
function linesWithReason(module: Module): Set<number> {
  const lines = new Set<number>();
  for (const [offset, comment] of module.comments) {
    if (!reason.test(comment)) continue;
    const line = module.lineAt(offset);
    const standsAlone = module.text.split("\n")[line - 1]?.trim().startsWith("//");
    lines.add(standsAlone ? line + 1 : line);
  }
  return lines;
}

/** The titles of all tests, contract cases included: `{ rule: "..." }` or `["rule", run]`. */
export function testTitles(repository: Repository): string[] {
  return repository.modules().flatMap((module) => {
    const isContract = module.path.startsWith("src/testing/");
    const patterns = [
      ...(isTestFile(module.path) ? [chapterOrCaseCall] : []),
      ...(isContract || isTestFile(module.path) ? [/(?<![\w$.])rule:\s*(?=["'`])/g] : []),
      ...(isContract ? [/\[\s*(?=["'`])/g] : []),
    ];
    return patterns.flatMap((pattern) =>
      [...module.code.matchAll(pattern)].map((match) => module.literals.get(match.index + match[0].length) ?? ""),
    );
  });
}
