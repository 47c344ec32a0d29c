/** A piece of a payload with what it is, for its colour. The pieces together are the text. */
interface Piece {
  readonly kind: "name" | "text" | "number" | "word" | "mark" | "space";
  readonly text: string;
}

const TOKEN = /\s+|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]/y;
const INDENT = "  ";

/**
 * JSON set in lines, or null when the text is not JSON. It is never parsed into values: a number of 20 digits, a name
 * that occurs twice and the order of names stay as they were written.
 */
export function jsonPieces(text: string): Piece[] | null {
  const tokens = tokensOf(text);
  if (tokens === null) return null;
  const pieces: Piece[] = [];
  const open: string[] = [];
  const breakLine = () => pieces.push({ kind: "space", text: `\n${INDENT.repeat(open.length)}` });
  for (const [at, token] of tokens.entries()) {
    const next = tokens[at + 1];
    if (token === "{" || token === "[") {
      pieces.push({ kind: "mark", text: token });
      open.push(token === "{" ? "}" : "]");
      if (next !== open.at(-1)) breakLine();
    } else if (token === "}" || token === "]") {
      if (open.pop() !== token) return null;
      const isEmpty = tokens[at - 1] === (token === "}" ? "{" : "[");
      if (!isEmpty) breakLine();
      pieces.push({ kind: "mark", text: token });
    } else if (token === ",") {
      pieces.push({ kind: "mark", text: token });
      breakLine();
    } else if (token === ":") pieces.push({ kind: "mark", text: token }, { kind: "space", text: " " });
    else pieces.push({ kind: kindOf(token, next), text: token });
  }
  return open.length === 0 && tokens.length > 0 ? pieces : null;
}

function tokensOf(text: string): string[] | null {
  const tokens: string[] = [];
  let at = 0;
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text)?.[0];
    if (token === undefined) return null;
    at += token.length;
    if (token.trim() !== "") tokens.push(token);
  }
  return tokens;
}

function kindOf(token: string, next: string | undefined): Piece["kind"] {
  if (token.startsWith('"')) return next === ":" ? "name" : "text";
  return /^[-\d]/.test(token) ? "number" : "word";
}
