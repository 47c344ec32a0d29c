/** A part of a text. A mark stands for a character that is invisible or changes how others are displayed. */
interface VisiblePart {
  readonly text: string;
  readonly isMark: boolean;
}

/**
 * Control characters, direction overrides, zero-width characters and lone surrogates. Two keys that differ only in one of
 * these look the same, and an override shows `exe.gpj` for `jpg.exe`.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/gu;

/** Line breaks and tabs of a payload are kept. */
const LINES = new Set(["\n", "\r\n", "\t"]);

export function visibleParts(text: string, keepsLines = false): readonly VisiblePart[] {
  const parts: VisiblePart[] = [];
  let from = 0;
  for (const { 0: hidden, index } of text.matchAll(HIDDEN)) {
    if (keepsLines && (LINES.has(hidden) || (hidden === "\r" && text[index + 1] === "\n"))) continue;
    if (index > from) parts.push({ text: text.slice(from, index), isMark: false });
    parts.push({ text: markOf(hidden), isMark: true });
    from = index + hidden.length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), isMark: false });
  return parts;
}

/** For window titles and tooltips, which hold plain text only. */
export function visibleText(text: string, charsMax = Number.POSITIVE_INFINITY): string {
  if (text === "") return "(empty)";
  return visibleParts(cutText(text, charsMax))
    .map((part) => part.text)
    .join("");
}

/** Truncates with an ellipsis, never within a character. */
export function cutText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const end = /[\ud800-\udbff]/.test(text.charAt(charsMax - 2)) ? charsMax - 2 : charsMax - 1;
  return `${text.slice(0, end)}…`;
}

function markOf(hidden: string): string {
  const code = hidden.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  return code > 0xffff ? `\\u{${hex}}` : `\\u${hex.padStart(4, "0")}`;
}
