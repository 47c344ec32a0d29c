import { posix } from "node:path";
import { type SourceText, splitSource } from "./source-text.ts";

export interface Module extends SourceText {
  readonly path: string;
  readonly imports: readonly Import[];
  readonly exports: readonly Export[];
}

export interface Import {
  readonly specifier: string;
  /** The path from the root for a relative specifier, else undefined. */
  readonly target: string | undefined;
  readonly line: number;
  /** The names taken from the target; `*` stands for all of them. */
  readonly names: readonly string[];
  /** Set where the names are passed on to this module's own importers. */
  readonly reexported: boolean;
  /** True for `import type` and `export type`: nothing is loaded at run time. */
  readonly isType: boolean;
}

export interface Export {
  readonly name: string;
  readonly line: number;
  readonly kind: "value" | "type";
  /** Where a re-exported name comes from; `origin` is its name there, `*` for all. */
  readonly from?: string | undefined;
  readonly origin?: string;
}

interface Binding {
  readonly origin: string;
  readonly name: string;
  readonly isType: boolean;
}

const declared =
  /(?<![\w$.])export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(function|const|let|var|class|interface|type)\s*\*?\s*([\w$]+)/g;
const clauseFrom = /(?<![\w$.])(import|export)\s+(type\s+)?([\w$\s{},*]*?)\s*\bfrom\s*(?=["'])/g;
const localList = /(?<![\w$.])export\s+(type\s+)?(\{[\w$\s,]*\})(?!\s*from\b)/g;
/** Everything else that loads a file: import("x"), import "x", import.meta.resolve("x"), new URL("x", import.meta.url). */
const loads = /(?<![\w$.])(?:import\s*\(\s*|import\s+|import\.meta\.resolve\(\s*|importPeer[^("'`]*\(\s*)(?=["'`])/g;
const urls = /(?<![\w$.])new\s+URL\(\s*(?=["'])/g;

export function parseModule(path: string, text: string): Module {
  const source = splitSource(text);
  const imports: Import[] = [];
  const exports: Export[] = [];
  const targetOf = (specifier: string): string | undefined =>
    specifier.startsWith(".") ? posix.normalize(posix.join(posix.dirname(path), specifier)) : undefined;

  for (const match of source.code.matchAll(clauseFrom)) {
    const specifier = source.literals.get(match.index + match[0].length);
    if (specifier === undefined) continue;
    const bindings = bindingsOf(match[3] ?? "", match[2] !== undefined);
    const line = source.lineAt(match.index);
    const target = targetOf(specifier);
    const reexported = match[1] === "export";
    const names = bindings.map((binding) => binding.origin);
    imports.push({ specifier, target, line, names, reexported, isType: match[2] !== undefined });
    if (!reexported) continue;
    for (const { name, origin, isType } of bindings) {
      exports.push({ name, origin, line, kind: isType ? "type" : "value", from: target });
    }
  }
  for (const pattern of [loads, urls]) {
    for (const match of source.code.matchAll(pattern)) {
      const specifier = source.literals.get(match.index + match[0].length);
      if (specifier === undefined || (pattern === urls && !specifier.startsWith("."))) continue;
      const line = source.lineAt(match.index);
      imports.push({ specifier, target: targetOf(specifier), line, names: ["*"], reexported: false, isType: false });
    }
  }
  exports.push(...ownExports(source));
  return { ...source, path, imports, exports };
}

function ownExports(source: SourceText): Export[] {
  const found: Export[] = [];
  for (const match of source.code.matchAll(declared)) {
    const kind = match[1] === "interface" || match[1] === "type" ? "type" : "value";
    found.push({ name: match[2] ?? "", line: source.lineAt(match.index), kind });
  }
  for (const match of source.code.matchAll(localList)) {
    for (const { name, isType } of bindingsOf(match[2] ?? "", match[1] !== undefined)) {
      found.push({ name, line: source.lineAt(match.index), kind: isType ? "type" : "value" });
    }
  }
  for (const match of source.code.matchAll(/(?<![\w$.])export\s+default\b/g)) {
    found.push({ name: "default", line: source.lineAt(match.index), kind: "value" });
  }
  return found;
}

/** Reads `a, { b, type c as d }`, `* as e` or `*`. */
function bindingsOf(clause: string, allTypes: boolean): Binding[] {
  const braces = /\{([^}]*)\}/.exec(clause);
  const outside = clause.replace(/\{[^}]*\}/, "");
  const bindings: Binding[] = [];
  for (const part of (braces?.[1] ?? "").split(",")) {
    const match = /^\s*(type\s+)?([\w$]+)(?:\s+as\s+([\w$]+))?\s*$/.exec(part);
    if (match === null) continue;
    const origin = match[2] ?? "";
    bindings.push({ origin, name: match[3] ?? origin, isType: allTypes || match[1] !== undefined });
  }
  for (const part of outside.split(",")) {
    const namespace = /^\s*\*(?:\s+as\s+([\w$]+))?\s*$/.exec(part);
    if (namespace) bindings.push({ origin: "*", name: namespace[1] ?? "*", isType: allTypes });
    else if (part.trim() !== "") bindings.push({ origin: "default", name: part.trim(), isType: allTypes });
  }
  return bindings;
}
