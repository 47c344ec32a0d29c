import { randomUUID } from "node:crypto";
import { inspect, styleText } from "node:util";

/** Characters that control a terminal or the direction of text. */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}]/gu;
const CONTROLS_BUT_LINES = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Escapes a text of an event for one line: otherwise its author could control the reader's terminal. */
export function plainLine(text: string): string {
  return text.replace(CONTROLS, escaped);
}

/** The same for texts of several lines. The escapes are valid in JSON too. */
export function plainLines(text: string): string {
  return text.replace(CONTROLS_BUT_LINES, escaped);
}

/** A text style. */
export type Paint = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Marks a colour until the text is written. It is random, so that no event can forge it. */
const MARK = randomUUID();
const MARKS = new RegExp(`\u0001${MARK};(\\d+)m`, "u");

/** True on a terminal or with FORCE_COLOR; never with NO_COLOR. */
export function isColoured(stream: NodeJS.WriteStream): boolean {
  return styleText("red", "x", { stream }) !== "x";
}

/** Styles a text where the stream shows colours. The mark becomes an escape sequence when the text is written. */
export function paint(style: Paint, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  if (!isColoured(stream)) return text;
  const [on, off] = inspect.colors[style] ?? [0, 0];
  return `\u0001${MARK};${on}m${text}\u0001${MARK};${off}m`;
}

/** Makes a text safe for a terminal: shows foreign escape sequences, and turns our marks into colours. */
export function terminalText(text: string): string {
  return text
    .split(MARKS)
    .map((piece, at) => (at % 2 === 0 ? plainLines(piece) : `\u001b[${piece}m`))
    .join("");
}

/** Our own sequences, which redraw a line or clear the screen. They only start a text. */
const OWN_SEQUENCES = ["\r\u001b[2K", "\u001b[H\u001b[2J", "\r"];

interface TextStream {
  write: (chunk: string | Uint8Array, ...rest: never[]) => boolean;
}

/** Makes the stream escape all texts from now on. Bytes pass unchanged: a caller writes them on purpose. */
export function guardTerminal(stream: TextStream): void {
  const write = stream.write.bind(stream);
  stream.write = (chunk, ...rest) => {
    if (typeof chunk !== "string") return write(chunk, ...rest);
    const own = OWN_SEQUENCES.find((sequence) => chunk.startsWith(sequence)) ?? "";
    return write(own + terminalText(chunk.slice(own.length)), ...rest);
  };
}
