import { RelayError } from "../../core/errors.ts";

/** One word of a filter: `key:42`, or a bare word without a field. */
export interface FilterWord {
  readonly field: string | null;
  readonly value: string;
  /** An empty value is a mistake unless it was quoted. */
  readonly isQuoted: boolean;
  /** Quoted or escaped somewhere: then `*` is literal. */
  readonly isLiteral: boolean;
  /** The original text. */
  readonly text: string;
  /** Position of its first character, counted from 1. */
  readonly at: number;
}

/** The longest filter. */
export const FILTER_LENGTH_MAX = 10_000;
const QUOTED_MAX = 60;

/** Splits at spaces. Double quotes keep a value together; a backslash makes the next character literal. */
export function filterWords(text: string): readonly FilterWord[] {
  if (text.length > FILTER_LENGTH_MAX) {
    throw new RelayError(
      "CONFIG_INVALID",
      `The filter has ${text.length} characters; the maximum is ${FILTER_LENGTH_MAX}`,
    );
  }
  const words: FilterWord[] = [];
  let next = nextWord(text, 0);
  while (next < text.length) {
    const [word, end] = readWord(text, next);
    words.push(word);
    next = nextWord(text, end);
  }
  return words;
}

/** The one form of all filter errors: what, in which word, and where. */
export function wordError({ text, at }: Pick<FilterWord, "text" | "at">, problem: string): RelayError {
  const shown = text.length <= QUOTED_MAX ? text : `${text.slice(0, QUOTED_MAX - 1)}…`;
  return new RelayError("CONFIG_INVALID", `${JSON.stringify(shown)} at character ${at} of the filter: ${problem}`);
}

/** Quotes a value where needed, so that it parses back unchanged. */
export function quotedValue(value: string): string {
  if (value !== "" && !/[\s"\\:]/.test(value)) return value;
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}

/** The same where `*` would be a wildcard. */
export function literalValue(value: string): string {
  return value.includes("*") ? `"${value.replace(/["\\]/g, "\\$&")}"` : quotedValue(value);
}

function nextWord(text: string, from: number): number {
  let at = from;
  while (at < text.length && isSpace(text, at)) at += 1;
  return at;
}

function isSpace(text: string, at: number): boolean {
  return /\s/.test(text.charAt(at));
}

function readWord(text: string, start: number): readonly [FilterWord, number] {
  let field: string | null = null;
  let value = "";
  let isQuoted = false;
  let isLiteral = false;
  let opened: number | null = null;
  let at = start;
  for (; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === "\\") {
      at += 1;
      isLiteral = true;
      value += text.charAt(at);
    } else if (character === '"') {
      opened = opened === null ? at : null;
      isQuoted = true;
    } else if (opened !== null) value += character;
    else if (isSpace(text, at)) break;
    else if (character === ":" && field === null && !isQuoted) {
      field = value;
      value = "";
    } else value += character;
  }
  const word = { field, value, isQuoted, isLiteral: isLiteral || isQuoted, text: text.slice(start, at), at: start + 1 };
  requireWhole(word, opened, at > text.length);
  return [word, at];
}

function requireWhole(word: FilterWord, opened: number | null, isCut: boolean): void {
  if (isCut) throw wordError(word, "the backslash at the end must be followed by a character");
  if (opened !== null) throw wordError(word, `the quote at character ${opened + 1} is not closed: add another "`);
  if (word.value.includes("\0")) throw wordError(word, "it contains a NUL character, which no event can have");
}
