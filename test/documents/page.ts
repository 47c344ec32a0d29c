import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");

/** A fenced block of a page. */
export interface Block {
  readonly language: string;
  readonly text: string;
  /** Of its first fence, counted from 1. */
  readonly line: number;
  /** Why the test does not run it, as the comment above it says; null where it is run. */
  readonly notRun: string | null;
  /** The last heading above it. */
  readonly heading: string;
}

export interface Page {
  /** From the root of the repository. */
  readonly path: string;
  readonly blocks: readonly Block[];
  /** The heading of another page up to which a reader follows that one first, as a sentence on this page says. */
  readonly first: { readonly page: string; readonly steps: number } | null;
}

const FENCE = /^( *)```(\w*)\n([\s\S]*?)^\1```$/gm;
const MARK = /<!-- not run: ([^>]+?) -->\s*$/;
const FIRST = /follow steps 1 to (\d) of \[[^\]]+\]\(\.\.\/([^)#]+)\)/;

export function readPage(path: string): Page {
  const text = readFileSync(resolve(ROOT, path), "utf8");
  const first = FIRST.exec(text);
  return {
    path,
    blocks: [...text.matchAll(FENCE)].map((match) => blockOf(text, match)),
    first: first === null ? null : { page: `docs/${first[2]}`, steps: Number(first[1]) },
  };
}

function blockOf(text: string, match: RegExpExecArray): Block {
  const [, indent = "", language = "", code = ""] = match;
  const above = text.slice(0, match.index);
  return {
    language,
    text: code.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
    line: above.split("\n").length,
    notRun: MARK.exec(above)?.[1]?.replaceAll(/\s+/g, " ") ?? null,
    heading: [...above.matchAll(/^#+ (.*)$/gm)].at(-1)?.[1] ?? "",
  };
}

/** Tests that a reason names as its replacement, and that do not exist. */
export function missingTests({ notRun }: Block): readonly string[] {
  const named = notRun?.match(/\b(?:test|src|examples)\/[\w./-]+\.ts\b/g) ?? [];
  return named.filter((file) => !existsSync(resolve(ROOT, file)));
}

export interface Command {
  readonly text: string;
  /** It runs until it is stopped: what follows is typed into another terminal. */
  readonly isService: boolean;
}

const VARIABLES = String.raw`(?:[A-Za-z_]+=(?:'[^']*'|"[^"]*"|\S+)\s+)*`;
const SERVICE = new RegExp(String.raw`^${VARIABLES}npx outbox-relay (?:dynamodb )?run\b(?!.* --once)|# until Ctrl-C`);

/** The commands of a block of shell, one by one. */
export function commandsOf({ text }: Block): readonly Command[] {
  return text
    .replaceAll(/\\\n\s*/g, " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => ({ text: line, isService: SERVICE.test(line) }));
}

/** The file that a block belongs into, by the comment in its first line; null where there is none. */
export function fileOf({ text }: Block): string | null {
  return /^(?:\/\/|#) ([\w./-]+\.(?:ts|yaml|json|prisma))\n/.exec(text)?.[1] ?? null;
}

/** Whether an output is the one that the page shows; `...` stands for anything, alone on its line for any lines. */
export function isLike(output: string, shown: string): boolean {
  const pattern = shown
    .trimEnd()
    .split("\n")
    .map((line) => (line === "..." ? "(?:.*\n)*?.*" : line.trimEnd().split("...").map(literally).join(".*")))
    .join("\n");
  return new RegExp(`^${pattern}$`).test(output.replaceAll(/[^\S\n]+$/gm, "").trimEnd());
}

const literally = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
