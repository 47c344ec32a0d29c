/** The `outbox-relay` command line for a button. Values are quoted for the shell. */
export function command(...words: readonly (string | number | null | undefined)[]): string {
  const given = words.filter((word) => word !== null && word !== undefined && word !== "");
  return ["outbox-relay", ...given.map((word) => shellWord(String(word)))].join(" ");
}

/** `--name value`, or no arguments without a value. */
export function flag(name: string, value: string | number | null | undefined): string[] {
  return value === null || value === undefined || value === "" ? [] : [`--${name}`, String(value)];
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
