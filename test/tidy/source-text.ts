/**
 * Splits TypeScript text into code, strings and comments without a parser.
 *
 * `code` has the length and the line breaks of the text, but the inside of strings, templates, regular expressions and
 * comments is blank, so that a search in it finds code only. The expressions inside a template stay visible.
 */
export interface SourceText {
  readonly text: string;
  readonly code: string;
  /** Strings and templates by the offset of their opening quote; the expressions of a template are left out. */
  readonly literals: ReadonlyMap<number, string>;
  /** Comments by the offset of their first character. */
  readonly comments: ReadonlyMap<number, string>;
  lineAt(offset: number): number;
}

interface Cursor {
  readonly text: string;
  readonly code: string[];
  readonly literals: Map<number, string>;
  readonly comments: Map<number, string>;
  at: number;
}

const wordsBeforeRegex =
  /(?:^|[^\w$.])(?:return|typeof|case|in|of|delete|void|throw|new|await|yield|else|do|instanceof)$/;

export function splitSource(text: string): SourceText {
  const cursor: Cursor = { text, code: text.split(""), literals: new Map(), comments: new Map(), at: 0 };
  skipCode(cursor, false);
  const lineStarts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lineStarts.push(at + 1);
  return {
    text,
    code: cursor.code.join(""),
    literals: cursor.literals,
    comments: cursor.comments,
    lineAt: (offset) => lineOf(lineStarts, offset),
  };
}

function lineOf(lineStarts: readonly number[], offset: number): number {
  let low = 0;
  let high = lineStarts.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((lineStarts[middle] ?? 0) <= offset) low = middle;
    else high = middle;
  }
  return low + 1;
}

/** Walks over code; inside a template it stops behind the brace that closes the expression. */
function skipCode(cursor: Cursor, inTemplate: boolean): void {
  let depth = 0;
  while (cursor.at < cursor.text.length) {
    const char = cursor.text[cursor.at];
    if (char === '"' || char === "'") skipString(cursor, char);
    else if (char === "`") skipTemplate(cursor);
    else if (char === "/" && cursor.text[cursor.at + 1] === "/") skipComment(cursor, "\n", 0);
    else if (char === "/" && cursor.text[cursor.at + 1] === "*") skipComment(cursor, "*/", 2);
    else if (char === "/" && startsRegex(cursor)) skipRegex(cursor);
    else {
      if (char === "{") depth++;
      if (char === "}" && --depth < 0 && inTemplate) return;
      cursor.at++;
    }
  }
}

function blank(cursor: Cursor, from: number, to: number): void {
  for (let at = from; at < to; at++) if (cursor.text[at] !== "\n") cursor.code[at] = " ";
}

function skipString(cursor: Cursor, quote: string): void {
  const start = cursor.at;
  let at = start + 1;
  while (at < cursor.text.length && cursor.text[at] !== quote && cursor.text[at] !== "\n") {
    at += cursor.text[at] === "\\" ? 2 : 1;
  }
  cursor.literals.set(start, cursor.text.slice(start + 1, at));
  blank(cursor, start + 1, Math.min(at, cursor.text.length));
  cursor.at = at + 1;
}

function skipTemplate(cursor: Cursor): void {
  const start = cursor.at;
  let value = "";
  let chunk = start + 1;
  const closeChunk = (): void => {
    value += cursor.text.slice(chunk, cursor.at);
    blank(cursor, chunk, Math.min(cursor.at, cursor.text.length));
  };
  cursor.at++;
  while (cursor.at < cursor.text.length && cursor.text[cursor.at] !== "`") {
    if (cursor.text.startsWith("${", cursor.at)) {
      closeChunk();
      cursor.at += 2;
      skipCode(cursor, true);
      chunk = ++cursor.at;
    } else cursor.at += cursor.text[cursor.at] === "\\" ? 2 : 1;
  }
  closeChunk();
  cursor.literals.set(start, value);
  cursor.at++;
}

function skipComment(cursor: Cursor, end: string, endLength: number): void {
  const start = cursor.at;
  const found = cursor.text.indexOf(end, start + 2);
  cursor.at = found < 0 ? cursor.text.length : found + endLength;
  cursor.comments.set(start, cursor.text.slice(start, cursor.at));
  blank(cursor, start, cursor.at);
}

/** A slash after a value divides; everywhere else it begins a regular expression. */
function startsRegex(cursor: Cursor): boolean {
  let at = cursor.at - 1;
  while (at >= 0 && /\s/.test(cursor.code[at] ?? "")) at--;
  if (at < 0) return true;
  if (!/[\w$)\]}"'`]/.test(cursor.code[at] ?? "")) return true;
  return wordsBeforeRegex.test(cursor.code.slice(Math.max(0, at - 12), at + 1).join(""));
}

function skipRegex(cursor: Cursor): void {
  const start = cursor.at;
  let at = start + 1;
  let inClass = false;
  for (; at < cursor.text.length && cursor.text[at] !== "\n"; at++) {
    const char = cursor.text[at];
    if (char === "\\") at++;
    else if (char === "[") inClass = true;
    else if (char === "]") inClass = false;
    else if (char === "/" && !inClass) break;
  }
  blank(cursor, start, Math.min(at + 1, cursor.text.length));
  // Quotes in its place, so that what follows is read as following a value.
  cursor.code[start] = '"';
  if (at < cursor.text.length) cursor.code[at] = '"';
  cursor.at = at + 1;
}
