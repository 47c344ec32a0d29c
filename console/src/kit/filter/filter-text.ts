/** Splits a filter that may be incomplete into its terms. Only the service interprets them. */
interface TypedWord {
  /** Null for a bare word. */
  readonly field: string | null;
  readonly value: string;
  /** Offsets of the term in the text; `end` is exclusive. */
  readonly start: number;
  readonly end: number;
}

export function typedWords(text: string): readonly TypedWord[] {
  const words: TypedWord[] = [];
  let at = 0;
  while (at < text.length) {
    if (/\s/.test(text.charAt(at))) at += 1;
    else {
      const word = readWord(text, at);
      words.push(word);
      at = word.end;
    }
  }
  return words;
}

function readWord(text: string, start: number): TypedWord {
  let field: string | null = null;
  let value = "";
  let isOpen = false;
  let wasQuoted = false;
  let at = start;
  for (; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === "\\") {
      at += 1;
      value += text.charAt(at);
    } else if (character === '"') {
      isOpen = !isOpen;
      wasQuoted = true;
    } else if (!isOpen && /\s/.test(character)) break;
    else if (character === ":" && field === null && !wasQuoted) {
      field = value;
      value = "";
    } else value += character;
  }
  return { field, value, start, end: Math.min(at, text.length) };
}

/** Quotes a value if the parser would not read it back unchanged. */
export function quotedValue(value: string): string {
  if (value !== "" && !/[\s"\\:]/.test(value)) return value;
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}

/** Quotes a value that contains a `*`, which would act as a wildcard. */
export function literalValue(value: string): string {
  return value.includes("*") ? `"${value.replace(/["\\]/g, "\\$&")}"` : quotedValue(value);
}

/** The value of a field in the filter; null if the field is not there. */
export function fieldValue(text: string, field: string): string | null {
  return typedWords(text).find((word) => word.field === field)?.value ?? null;
}

/** Sets a field of the filter in place, or removes it. */
export function withField(text: string, field: string, value: string | null): string {
  const wanted = value === null ? [] : [`${field}:${quotedValue(value)}`];
  const words = typedWords(text);
  const first = words.findIndex((word) => word.field === field);
  const parts = words.flatMap((word, at) => {
    if (word.field !== field) return [text.slice(word.start, word.end)];
    return at === first ? wanted : [];
  });
  return [...parts, ...(first < 0 ? wanted : [])].join(" ");
}

/** The term of a filter that the service rejected. */
interface FilterFault {
  /** Offset of the term within the filter. */
  readonly start: number;
  readonly end: number;
  readonly problem: string;
}

const FORM = /^("(?:[^"\\]|\\.)*") at character (\d+) of the filter: (.*)$/s;

/** Null for an error that is not about a term of the filter. */
export function filterFault(message: string): FilterFault | null {
  const [, quoted, at, problem] = FORM.exec(message) ?? [];
  if (quoted === undefined || at === undefined || problem === undefined) return null;
  const start = Number(at) - 1;
  return { start, end: start + wordIn(quoted).replace(/…$/, "").length, problem: withoutCode(problem) };
}

function wordIn(quoted: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted.slice(1, -1);
  }
}

/** Removes the error code and the generic advice after it: the problem is more specific. */
function withoutCode(problem: string): string {
  return problem.replace(/ \[[A-Z_]+\].*$/s, "");
}
