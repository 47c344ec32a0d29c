/** Exit codes, the same for every command. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unhealthy: 3, notFound: 4, partly: 5 } as const;

/** Called once with the exit code when the command ends. */
export type End = (code: number) => void;

/** Ends the command with an exit code and lines for standard error. */
export class Exit extends Error {
  readonly code: number;
  readonly lines: readonly string[];

  constructor(code: number, lines: readonly string[]) {
    super(lines.join("\n"));
    this.name = "Exit";
    this.code = code;
    this.lines = lines;
  }
}
