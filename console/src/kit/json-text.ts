/** A token of a payload with its kind, which decides its colour. */
interface Piece {
  readonly kind: "name" | "text" | "number" | "word" | "mark" | "space" | "rest";
  readonly text: string;
}

// Matches runs within a string at once: backtracking per character would overflow the stack.
const TOKEN = /\s+|"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]/y;
const INDENT = "  ";

/** Deeper levels stay on one line: indents would grow with the square of the text. */
const DEPTH_MAX = 40;
/** Each piece is an element of the page. The rest is shown unformatted. */
const PIECES_MAX = 10_000;

/**
 * Formats JSON, or returns null if the text is not JSON. Depth and number of pieces are bounded for any text. It is never
 * parsed into values: a number of 20 digits, a duplicate name and the order of names stay as they were written.
 */
export function jsonPieces(text: string): Piece[] | null {
  const tokens = tokensOf(text);
  if (tokens === null || !isNested(tokens)) return null;
  const pieces: Piece[] = [];
  const open: string[] = [];
  const breakLine = (depth: number) => {
    if (depth <= DEPTH_MAX) pieces.push({ kind: "space", text: `\n${INDENT.repeat(open.length)}` });
  };
  for (const [at, { text: token, start }] of tokens.entries()) {
    if (pieces.length >= PIECES_MAX) return [...pieces, { kind: "rest", text: text.slice(start) }];
    const next = tokens[at + 1]?.text;
    if (token === "{" || token === "[") {
      pieces.push({ kind: "mark", text: token });
      open.push(token === "{" ? "}" : "]");
      if (next !== open.at(-1)) breakLine(open.length);
    } else if (token === "}" || token === "]") {
      open.pop();
      const isEmpty = tokens[at - 1]?.text === (token === "}" ? "{" : "[");
      if (!isEmpty) breakLine(open.length + 1);
      pieces.push({ kind: "mark", text: token });
    } else if (token === ",") {
      pieces.push({ kind: "mark", text: token });
      breakLine(open.length);
    } else if (token === ":") pieces.push({ kind: "mark", text: token }, { kind: "space", text: " " });
    else pieces.push({ kind: kindOf(token, next), text: token });
  }
  return pieces;
}

interface Token {
  readonly text: string;
  readonly start: number;
}

/** Whether all brackets match and the text is not empty. */
function isNested(tokens: readonly Token[]): boolean {
  const open: string[] = [];
  for (const { text } of tokens) {
    if (text === "{" || text === "[") open.push(text === "{" ? "}" : "]");
    else if ((text === "}" || text === "]") && open.pop() !== text) return false;
  }
  return open.length === 0 && tokens.length > 0;
}

function tokensOf(text: string): Token[] | null {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text)?.[0];
    if (token === undefined) return null;
    if (token.trim() !== "") tokens.push({ text: token, start: at });
    at += token.length;
  }
  return tokens;
}

function kindOf(token: string, next: string | undefined): Piece["kind"] {
  if (token.startsWith('"')) return next === ":" ? "name" : "text";
  return /^[-\d]/.test(token) ? "number" : "word";
}
