/**
 * No private part of a library is used: what its makers do not document they may change in any release.
 *
 * How this is checked, in every TypeScript file, without types:
 * - A path below a package (`pkg/dist/x.js`), in an import of any form or in a `require`, must be one of the package's
 *   `exports`, as its installed package.json lists them. A package without `exports` has no such path, unless it documents
 *   one (`documentedPaths`).
 * - Names that a package exports for its own parts alone may not be taken from it (`privateNames`).
 * - No member whose name begins with an underscore may be read, with a dot or in brackets; nor a symbol that somebody
 *   else made, by Object.getOwnPropertySymbols.
 * - Members that are private without an underscore are known by name (`privateMembers`). Members that TypeScript knows to
 *   be private are refused by the compiler with a dot, and by Biome (useLiteralKeys) in brackets.
 *
 * What it cannot see is a cast through `unknown`. There is one such use: src/publishers/rabbitmq/rabbitmq-client.ts takes the
 * socket of amqplib's connection, which has no other way to take back what was not sent yet.
 */
import { isBuiltin } from "node:module";
import { packageOf } from "./layers.ts";
import type { Module } from "./module.ts";
import type { Offence, Repository } from "./repository.ts";

/** Paths below packages that have no `exports`, each with who says that it is public. */
const documentedPaths: readonly { readonly path: RegExp; readonly why: string }[] = [
  { path: /^ajv\/dist\/2020\.js$/, why: "the manual of ajv names it for this dialect of JSON Schema" },
  { path: /^google-protobuf\/google\/protobuf\/\w*_pb\.js$/, why: "its manual imports the common messages so" },
  {
    path: /^@kurrent\/kurrentdb-client\/generated\/kurrentdb\/protocols\/v1\/\w+_pb\.js$/,
    why: "made from the published protocol, which the stand-in of the server in test/servers speaks",
  },
];

const privateNames: Readonly<Record<string, readonly string[]>> = { pino: ["symbols"] };

/** Of ioredis and BullMQ. */
const privateMembers = ["scriptsSet", "commandQueue", "offlineQueue", "execCommand", "addStandardJob"];

/** Metadata of a metric in a log line: AWS documents the name. */
const underscoresAllowed = ["_aws"];

const required = /\b\w*[rR]equire(?:\.resolve)?\(\s*(?=["'`])/g;
const bracket = /(?<=[\w$)\]])(?:\?\.)?\[\s*(?=["'`])/g;
const member = new RegExp(`\\.\\s*(_\\w+|getOwnPropertySymbols\\b|(?:${privateMembers.join("|")})\\b)`, "g");

export function privateParts(repository: Repository): Offence[] {
  return repository.modules().flatMap((module) => [
    ...pathsOf(module)
      .filter(({ specifier }) => !isPublic(repository, specifier))
      .map(({ line, specifier }) => ({ file: module.path, line, what: `imports ${specifier}` })),
    ...privateUses(module).map(({ line, name }) => ({ file: module.path, line, what: `uses ${name}` })),
  ]);
}

function pathsOf({ code, imports, lineAt, literals }: Module): { specifier: string; line: number }[] {
  const calls = [...code.matchAll(required)].map(({ 0: text, index }) => ({
    specifier: literals.get(index + text.length) ?? "",
    line: lineAt(index),
  }));
  return [...imports, ...calls].filter(({ specifier }) => /^[\w@]/.test(specifier) && !isBuiltin(specifier));
}

function isPublic(repository: Repository, specifier: string): boolean {
  const name = packageOf(specifier);
  if (specifier === name || /^\w+:/.test(specifier)) return true;
  if (documentedPaths.some(({ path }) => path.test(specifier))) return true;
  const manifest = repository.installed(name);
  // Nothing can be said of what is not installed; that it is not declared is another rule's business.
  if (manifest === null) return true;
  const { exports = {} } = manifest;
  const path = `.${specifier.slice(name.length)}`;
  return Object.entries(exports as object).some(([pattern, to]) => to !== null && matches(pattern, path));
}

function matches(pattern: string, path: string): boolean {
  const [before = "", after] = pattern.split("*");
  if (after === undefined) return pattern === path;
  return path.length > before.length + after.length && path.startsWith(before) && path.endsWith(after);
}

function privateUses({ code, imports, lineAt, literals }: Module): { name: string; line: number }[] {
  const named = imports.flatMap(({ line, names, specifier }) =>
    names.filter((name) => privateNames[specifier]?.includes(name)).map((name) => ({ name, line })),
  );
  const ofPackages = Object.entries(privateNames).flatMap(([name, members]) => members.map((it) => `${name}\\.${it}`));
  const members = [...code.matchAll(new RegExp(`\\b(?:${ofPackages.join("|")})\\b`, "g")), ...code.matchAll(member)];
  const dotted = members.map((match) => ({ name: match[1] ?? match[0], line: lineAt(match.index) }));
  const bracketed = [...code.matchAll(bracket)].map(({ 0: text, index }) => ({
    name: literals.get(index + text.length) ?? "",
    line: lineAt(index),
  }));
  const isPrivate = (name: string) => name.startsWith("_") || privateMembers.includes(name);
  return [...named, ...dotted, ...bracketed.filter(({ name }) => isPrivate(name))].filter(
    ({ name }) => !underscoresAllowed.includes(name),
  );
}
