import type { Module } from "./module.ts";
import { isTestFile, type Offence, type Repository } from "./repository.ts";

const GLOSSARY = "docs/glossary.md";
const row = /^\| ([^|]+) \| ([^|]+) \| ([^|]*)\|$/gm;
const declared =
  /(?<![\w$.])(?:function\s*\*?|class|interface|type|const|let|readonly|get|set|async)\s+(?!function\b)#?([A-Za-z_$][\w$]*)/g;
const member = /^\s+(?:static\s+|async\s+)*#?([A-Za-z_$][\w$]*)\??\s*[(:]/gm;

/** The words that the glossary's last column rejects, each with the term that stands for it. */
export function rejectedWords(text: string): ReadonlyMap<string, string> {
  const rejected = new Map<string, string>();
  for (const [, term = "", , words = ""] of text.matchAll(row)) {
    for (const word of words.split(",").map((it) => it.trim()))
      if (word !== "not" && /^[a-z]+$/.test(word)) rejected.set(word, term.trim());
  }
  return rejected;
}

/** Names of the sources, declared or of files, that hold a word which the glossary rejects. */
export function namesBesideGlossary(repository: Repository): Offence[] {
  const rejected = rejectedWords(repository.text(GLOSSARY));
  return repository
    .modules()
    .filter(({ path }) => /^(?:src|console\/src)\//.test(path) && !isTestFile(path))
    .flatMap((module) => namesOf(module).flatMap(({ name, line }) => offencesOf(module.path, name, line, rejected)));
}

function namesOf(module: Module): { readonly name: string; readonly line: number }[] {
  const file = module.path.split("/").at(-1) ?? "";
  const names = [declared, member].flatMap((pattern) =>
    [...module.code.matchAll(pattern)].map((match) => ({ name: match[1] ?? "", line: module.lineAt(match.index) })),
  );
  return [{ name: file.replace(/\..*$/, ""), line: 1 }, ...names];
}

function offencesOf(file: string, name: string, line: number, rejected: ReadonlyMap<string, string>): Offence[] {
  const parts = name.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? [];
  const word = parts.map((part) => part.toLowerCase()).find((part) => rejected.has(part));
  return word === undefined
    ? []
    : [{ file, line, what: `${name} holds "${word}"; the term is "${rejected.get(word)}"` }];
}
