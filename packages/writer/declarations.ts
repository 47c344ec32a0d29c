import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A statement of a declaration file, with the comment above it, and the names it declares. */
type Statement = { readonly text: string; readonly names: readonly string[]; isKept: boolean };

/** At the left margin: a comment, or a statement without one. */
const STATEMENT = /^(?:\/\*\*[\s\S]*?\*\/\n)?(?:export|import|interface|type|declare|const|class|function)\b/gm;
const DECLARED = /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|const|class|function) (\w+)/m;
const COMMENT = /\/\*\*[\s\S]*?\*\//g;
const LIST = /^(import|export)( type)? \{([^}]*)\}( from "[^"]+")?;\n/gm;

/**
 * Removes the declarations that no entry reaches. The compiler declares whatever a module exports for others of this
 * repository; a package shows only what its users can name. Names are compared over all files, so that a name which two
 * files share keeps both.
 */
export async function keepReached(folder: string, entries: readonly string[]): Promise<void> {
  const files = await readDeclarations(folder);
  const all = [...files.values()].flat();
  const waiting = entries.flatMap((entry) => files.get(entry) ?? []);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (next.isKept) continue;
    next.isKept = true;
    const used = new Set(next.text.replaceAll(COMMENT, "").match(/\w+/g));
    waiting.push(...all.filter(({ isKept, names }) => !isKept && names.some((name) => used.has(name))));
  }
  const kept = new Set(all.filter(({ isKept }) => isKept).flatMap(({ names }) => names));
  for (const [file, statements] of files) {
    // A file that only passes on what others declare has no names of its own.
    const text = statements.filter(({ isKept, names }) => isKept || names.length === 0).map(({ text }) => text);
    const listed = text.join("").replaceAll(LIST, (...match) => onlyKept(match, kept));
    // A package of this size feels it: the compiler indents by four spaces, also the lines of comments.
    const shown = listed.replaceAll(/^(?: {4})+/gm, (spaces) => "\t".repeat(spaces.length / 4));
    if (/^(?:export|interface|type) (?!\{\})/m.test(shown)) await writeFile(join(folder, file), shown);
    else await rm(join(folder, file));
  }
}

async function readDeclarations(folder: string): Promise<ReadonlyMap<string, Statement[]>> {
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(".d.ts"));
  const read = async (file: string) => [file, statementsOf(await readFile(join(folder, file), "utf8"))] as const;
  return new Map(await Promise.all(files.map(read)));
}

function statementsOf(text: string): Statement[] {
  const starts = [...text.matchAll(STATEMENT)].map(({ index }) => index);
  return starts.map((start, at) => {
    const statement = text.slice(start, starts[at + 1]);
    return {
      text: statement,
      names: [...(DECLARED.exec(statement.replace(COMMENT, "").trimStart()) ?? [])].slice(1),
      isKept: false,
    };
  });
}

/** The list of an import or export without the names that are gone. */
function onlyKept(match: readonly string[], kept: ReadonlySet<string>): string {
  const [all = "", word, type = "", names = "", from = ""] = match;
  if (names.trim() === "") return all;
  const left = names
    .split(",")
    .map((name) => name.trim())
    .filter((name) => kept.has(name.replace(/^type /, "")));
  return left.length === 0 ? "" : `${word}${type} { ${left.join(", ")} }${from};\n`;
}
