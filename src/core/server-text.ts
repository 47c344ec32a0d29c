/** Enough for the message of another server, and little enough to be stored with every attempt. */
const CHARACTERS_MAX = 500;

/** Characters that a log, a table or a terminal must not interpret, or that Postgres cannot store. */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\p{Cs}]+/gu;

/** A message of another server in one line: without control characters, and bounded. */
export function serverText(text: string, charactersMax = CHARACTERS_MAX): string {
  // Cut first, so that a huge text costs little. Far more than can be shown stays, since runs of spaces are collapsed.
  const beginning = text.length > 20 * charactersMax ? text.slice(0, 20 * charactersMax) : text;
  const line = beginning.replace(CONTROLS, " ").replace(/\s+/g, " ").trim();
  if (line.length <= charactersMax) return line;
  const characters = Array.from(line);
  return characters.length <= charactersMax ? line : `${characters.slice(0, charactersMax - 1).join("")}…`;
}
