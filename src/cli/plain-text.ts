/** What a terminal would obey instead of showing it, and what turns the direction of writing around. */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}]/gu;
const CONTROLS_BUT_LINES = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Texts of events in one line: whoever writes an event could otherwise steer the terminal of whoever looks at it. */
export function plainLine(text: string): string {
  return text.replace(CONTROLS, escaped);
}

/** The same for texts of several lines. What is escaped is right in JSON too. */
export function plainLines(text: string): string {
  return text.replace(CONTROLS_BUT_LINES, escaped);
}

/** A line that is drawn anew, or a screen that is wiped: ours, and always at the beginning. */
const OWN_SEQUENCES = ["\r\u001b[2K", "\u001b[H\u001b[2J", "\r"];

interface TextStream {
  write: (chunk: string | Uint8Array, ...rest: never[]) => boolean;
}

/** From now on the stream shows texts and obeys none of them. Bytes pass as they are: they were asked for as such. */
export function guardTerminal(stream: TextStream): void {
  const write = stream.write.bind(stream);
  stream.write = (chunk, ...rest) => {
    if (typeof chunk !== "string") return write(chunk, ...rest);
    const own = OWN_SEQUENCES.find((sequence) => chunk.startsWith(sequence)) ?? "";
    return write(own + plainLines(chunk.slice(own.length)), ...rest);
  };
}
