/** Exit codes, the same for every command. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unhealthy: 3, notFound: 4, partly: 5 } as const;

/** A command ends by telling its exit code. */
export type End = (code: number) => void;

/** Ends the command with a code and what to say on standard error, line by line. */
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
