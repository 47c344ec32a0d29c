import type { Offence, Repository } from "./repository.ts";

const fileLinesMax = 400;
const functionLinesMax = 60;
/** A test tells a story from its beginning to its end. */
const testLinesMax = 70;

/** Nobody reads them from top to bottom, or writes them. */
const generated = "// Made by `npm run generate`";

export function longFiles(repository: Repository): Offence[] {
  return repository.files
    .filter((path) => /\.tsx?$/.test(path) && !repository.text(path).startsWith(generated))
    .map((file) => ({ file, lines: repository.text(file).replace(/\n$/, "").split("\n").length }))
    .filter(({ lines }) => lines > fileLinesMax)
    .map(({ file, lines }) => ({ file, line: fileLinesMax, what: `${lines} lines, at most ${fileLinesMax}` }));
}

/** The callback of describe() is a chapter, not a function: it is left out. */
export function longFunctions(repository: Repository): Offence[] {
  return repository.modules().flatMap((module) =>
    functionsIn(module.code).flatMap(({ start, end, isChapter }) => {
      const line = module.lineAt(start);
      const lines = module.lineAt(end) - line + 1;
      const max = /^(?:src|console|packages)\/.*(?<!\.test)\.tsx?$/.test(module.path) ? functionLinesMax : testLinesMax;
      if (isChapter || lines <= max) return [];
      const head = module.text.split("\n")[line - 1]?.trim() ?? "";
      return [{ file: module.path, line, what: `${lines} lines, at most ${max}: ${head}` }];
    }),
  );
}

export interface FunctionSpan {
  /** Offset of the parenthesis that opens the parameters. */
  readonly start: number;
  /** Offset of the last character of the body. */
  readonly end: number;
  readonly isChapter: boolean;
}

const notFunctions = new Set(["if", "for", "while", "switch", "catch", "with", "await"]);

/** Finds functions, methods and arrows in code whose strings and comments are blank (`SourceText.code`). */
export function functionsIn(code: string): FunctionSpan[] {
  const { closing, parents } = pairBrackets(code);
  const found: FunctionSpan[] = [];
  for (const [start, close] of closing) {
    if (code[start] !== "(" || notFunctions.has(wordBefore(code, start))) continue;
    const body = findBody(code, close + 1, closing);
    if (body === undefined) continue;
    const end = body.isBlock ? closing.get(body.at) : endOfExpression(code, body.at, closing);
    const parent = parents.get(start);
    const isChapter = parent !== undefined && /^(?:describe|suite)$/.test(wordBefore(code, parent));
    if (end !== undefined) found.push({ start, end, isChapter });
  }
  return found;
}

interface Brackets {
  /** From the offset of each opening bracket to its closing one. */
  readonly closing: Map<number, number>;
  /** From the offset of each opening bracket to the one around it. */
  readonly parents: Map<number, number>;
}

export function pairBrackets(code: string): Brackets {
  const closing = new Map<number, number>();
  const parents = new Map<number, number>();
  const open: number[] = [];
  for (const { index, 0: char } of code.matchAll(/[()[\]{}]/g)) {
    const outer = open.at(-1);
    if ("([{".includes(char)) {
      if (outer !== undefined) parents.set(index, outer);
      open.push(index);
    } else if (outer !== undefined) {
      closing.set(outer, index);
      open.pop();
    }
  }
  return { closing, parents };
}

function wordBefore(code: string, offset: number): string {
  return /([\w$]+)\s*(?:<[^()]*>)?\s*$/.exec(code.slice(Math.max(0, offset - 80), offset))?.[1] ?? "";
}

function nextAt(code: string, from: number): number {
  let at = from;
  while (at < code.length && /\s/.test(code[at] ?? "")) at++;
  return at;
}

interface Body {
  readonly at: number;
  readonly isBlock: boolean;
}

function findBody(code: string, from: number, closing: ReadonlyMap<number, number>): Body | undefined {
  let at = nextAt(code, from);
  if (code[at] === ":") at = skipType(code, at + 1, closing);
  if (code[at] === "{") return { at, isBlock: true };
  if (!code.startsWith("=>", at)) return undefined;
  at = nextAt(code, at + 2);
  // A type with a brace behind it is what a function returns that returns a function.
  if (/^[\w$.]+(?:<[^<>{}]*>)?(?:\[\])*\s+\{/.test(code.slice(at, at + 200))) return undefined;
  return { at, isBlock: code[at] === "{" };
}

const wordsBeforeType = new Set(["is", "keyof", "typeof", "extends", "infer", "readonly", "asserts", "unique", "new"]);

/** Returns the offset behind a return type: of the body's brace, of the arrow, or of what shows that it was no type. */
function skipType(code: string, from: number, closing: ReadonlyMap<number, number>): number {
  let wantsOperand = true;
  let afterParenthesis = false;
  for (let at = nextAt(code, from); at < code.length; at = nextAt(code, at)) {
    const char = code[at] ?? "";
    const isArrow = code.startsWith("=>", at);
    const wasParenthesis = afterParenthesis;
    afterParenthesis = false;
    if (isArrow && !wasParenthesis) return at;
    if (char === "{" && !wantsOperand) return at;
    if (isArrow) {
      at += 2;
      wantsOperand = true;
    } else if ("([{".includes(char)) {
      afterParenthesis = char === "(";
      at = (closing.get(at) ?? code.length) + 1;
      wantsOperand = false;
    } else if (char === "<") {
      at = skipAngles(code, at);
      wantsOperand = false;
    } else if ("\"'`".includes(char)) {
      at = code.indexOf(char, at + 1) + 1 || code.length;
      wantsOperand = false;
    } else if ("|&?:.-".includes(char)) {
      at++;
      wantsOperand = true;
    } else {
      const word = /^[\w$]+/.exec(code.slice(at, at + 80))?.[0];
      if (word === undefined) return at;
      at += word.length;
      wantsOperand = wordsBeforeType.has(word);
    }
  }
  return code.length;
}

function skipAngles(code: string, from: number): number {
  let depth = 0;
  for (let at = from; at < code.length; at++) {
    if (code[at] === "<") depth++;
    if (code[at] === ">" && code[at - 1] !== "=" && --depth === 0) return at + 1;
  }
  return code.length;
}

function endOfExpression(code: string, from: number, closing: ReadonlyMap<number, number>): number {
  let last = from;
  for (let at = from; at < code.length && !",;)]}".includes(code[at] ?? ""); at++) {
    at = closing.get(at) ?? at;
    if (!/\s/.test(code[at] ?? "")) last = at;
  }
  return last;
}
