/** A filter as somebody is writing it: half a word is a word too. What it means, the service says. */
interface TypedWord {
  /** Null for a bare word. */
  readonly field: string | null;
  readonly value: string;
  /** Of the word within the text; `end` is behind its last character. */
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

/** A value so that it is read back as it is. */
export function quotedValue(value: string): string {
  if (value !== "" && !/[\s"\\:]/.test(value)) return value;
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}

/** What the filter asks of a field; null where it asks nothing. */
export function fieldValue(text: string, field: string): string | null {
  return typedWords(text).find((word) => word.field === field)?.value ?? null;
}

/** The filter with this field asked for, in the place where it stood before, or without it. */
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
