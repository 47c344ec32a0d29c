/** Replaces a redacted value. */
export const REDACTED = "[redacted]";

type Redact = (text: string) => string;

/**
 * Redacts values in a JSON text by the names of their fields, ignoring case; `*` matches any characters. A name with
 * dots matches the end of a path: `card.*` means all fields inside `card`. A text that is not JSON stays unchanged.
 */
export function jsonRedactor(patterns: readonly string[]): Redact {
  const paths = patterns.map((pattern) => pattern.split(".").map(nameForm).reverse());
  const isHidden = (path: readonly string[]) =>
    paths.some((forms) => forms.length <= path.length && forms.every((form, at) => form.test(path.at(-1 - at) ?? "")));
  return (text) => redactedJson(text, isHidden);
}

/** The regular expression of a name pattern. */
export function nameForm(pattern: string): RegExp {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\-]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "is");
}

interface Level {
  readonly isObject: boolean;
  /** The name of the field that is being read. */
  key: string | null;
  isKeyNext: boolean;
}

/**
 * Replaces values in the text itself instead of parsing and writing it: nothing else changes, and numbers keep all
 * their digits. A truncated or invalid text is redacted as far as it can be read.
 */
function redactedJson(text: string, isHidden: (path: readonly string[]) => boolean): string {
  if (!/^\s*[{[]/.test(text)) return text;
  const levels: Level[] = [];
  const shown: string[] = [];
  let [from, at] = [0, 0];
  while (at < text.length) {
    const level = levels.at(-1);
    const sign = text[at];
    if (sign === '"') {
      const end = endOfString(text, at);
      if (level?.isObject && level.isKeyNext) {
        level.key = keyOf(text.slice(at, end));
        level.isKeyNext = false;
      }
      at = end;
      continue;
    }
    at += 1;
    if (sign === "{" || sign === "[") levels.push({ isObject: sign === "{", key: null, isKeyNext: sign === "{" });
    else if (sign === "}" || sign === "]") levels.pop();
    else if (sign === "," && level !== undefined) level.isKeyNext = level.isObject;
    else if (sign === ":" && isHidden(pathOf(levels))) {
      const start = at + (/^\s*/.exec(text.slice(at, at + 1_000))?.[0].length ?? 0);
      shown.push(text.slice(from, start), JSON.stringify(REDACTED));
      from = endOfValue(text, start);
      at = from;
    }
  }
  return shown.join("") + text.slice(from);
}

/** The names of the fields on the way here. Positions in arrays do not count. */
function pathOf(levels: readonly Level[]): readonly string[] {
  return levels.flatMap(({ isObject, key }) => (isObject && key !== null ? [key] : []));
}

/** The position after the closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}

function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const sign = text[at]!;
    if (sign === '"') {
      at = endOfString(text, at) - 1;
      if (depth === 0) return at + 1;
    } else if (sign === "{" || sign === "[") depth += 1;
    else if (sign === "}" || sign === "]") {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && /[,\s]/.test(sign)) return at;
  }
  return text.length;
}

/** The name of a field, which may be written with escapes. */
function keyOf(literal: string): string {
  try {
    return JSON.parse(literal) as string;
  } catch {
    return literal.replaceAll('"', "");
  }
}
