import type { Module } from "./module.ts";
import { lineOfOffset, type Offence, type Repository } from "./repository.ts";

// The words are put together from parts, so that this file passes its own rule.
const word = (...parts: string[]): string => parts.join("");

const leftovers = new RegExp(`\\b(?:${[word("TO", "DO"), word("FIX", "ME"), word("X", "XX")].join("|")})\\b`, "g");

const registryHosts = [
  word("npmjs", ".org"),
  word("yarnpkg", ".com"),
  word("npm.pkg", ".github.com"),
  word("pypi", ".org"),
  word("pythonhosted", ".org"),
  word("maven", ".org"),
  word("maven", ".apache.org"),
  word("crates", ".io"),
  word("rubygems", ".org"),
  word("proxy.golang", ".org"),
];
const hosts = new RegExp(registryHosts.map((host) => host.replaceAll(".", "\\.")).join("|"), "gi");

/** A clone must be whole: nothing in it speaks of its making or of notes that are not in it. */
const making = new RegExp(
  [
    word("\\.\\./", "shared\\b"),
    word("/work/", "(?:shared|main)\\b"),
    word("\\bClau", "de\\b"),
    word("\\bAnthro", "pic\\b"),
    word("\\bChat", "GPT\\b"),
    word("\\bLL", "Ms?\\b"),
    word("\\bAI ", "(?:agent|assistant)s?\\b"),
    word("\\bseed ", "00\\d\\b"),
    word("\\bDESIGN", "\\.md\\b"),
    word("\\bREQUIREMENTS", "\\.md\\b"),
    word("\\bresearch", "/\\w+\\.md\\b"),
  ].join("|"),
  "g",
);

const suppressed = new RegExp(word("@ts-", "(?:ignore|nocheck)"), "g");
const looseTypes = /(?:\bas|[:<,|])\s*any\b/g;
const skippedTests =
  /\b(?:it|test|describe|suite|t)\s*\.\s*(?:skip|todo|only)\s*\(|\.only\s*\(|\b(?:skip|only):\s*true\b/g;

export function bannedWords(repository: Repository): Offence[] {
  const inText = repository.files
    .filter((file) => file !== "package-lock.json")
    .flatMap((file) => {
      const text = repository.text(file);
      if (text.includes("\0")) return [];
      const patterns = /\.[cm]?[jt]sx?$/.test(file)
        ? [leftovers, hosts, making, suppressed]
        : [leftovers, hosts, making];
      return patterns.flatMap((pattern) => found(file, text, pattern));
    });
  const inCode = repository
    .modules()
    .flatMap((module: Module) =>
      [looseTypes, skippedTests].flatMap((pattern) => found(module.path, module.code, pattern)),
    );
  return [...inText, ...inCode];
}

function found(file: string, text: string, pattern: RegExp): Offence[] {
  return [...text.matchAll(pattern)].map((match) => ({
    file,
    line: lineOfOffset(text, match.index),
    what: `"${match[0].trim()}"`,
  }));
}

const vagueName = /(?:^|[-_])(?:utils?|helpers?|common|managers?)$/i;

export function vagueNames(repository: Repository): Offence[] {
  return repository.files.flatMap((file) => {
    const vague = file.split("/").find((part) => vagueName.test(part.replace(/(?<=.)\..*$/, "")));
    return vague === undefined ? [] : [{ file, line: 1, what: `"${vague}" does not say what is inside` }];
  });
}

export function registryAddresses(repository: Repository): Offence[] {
  return repository.files
    .filter((file) => file.endsWith("package-lock.json"))
    .flatMap((file) => {
      const text = repository.text(file);
      return [...found(file, text, /"resolved":\s*"(?!file:|[\w./-]+")[^"]*"/g), ...found(file, text, hosts)];
    });
}
