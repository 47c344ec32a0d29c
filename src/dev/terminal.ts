import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

/** Writes lines to a terminal, or plain ones to a file or a pipe. */
export class Terminal {
  readonly isTerminal: boolean;
  readonly #out: NodeJS.WriteStream;
  readonly #hasColours: boolean;
  #status = "";

  constructor(out: NodeJS.WriteStream = process.stdout, env: NodeJS.ProcessEnv = process.env) {
    this.#out = out;
    this.isTerminal = out.isTTY === true;
    this.#hasColours = this.isTerminal && !env.NO_COLOR && env.TERM !== "dumb";
    // A closed pipe must not end the demo.
    out.on("error", () => {});
  }

  say(line: string): void {
    this.#clear();
    this.#out.write(`${line}\n`);
    this.#show();
  }

  /** Shows a status line that is updated in place. No effect without a terminal. */
  status(line: string): void {
    if (!this.isTerminal) return;
    this.#clear();
    this.#status = line.slice(0, Math.max(20, (this.#out.columns || 80) - 1));
    this.#show();
  }

  end(): void {
    this.#clear();
    this.#status = "";
  }

  paint(style: Style, text: string): string {
    return this.#hasColours ? styleText(style, text, { validateStream: false }) : text;
  }

  #clear(): void {
    if (this.#status !== "") this.#out.write("\r\x1b[2K");
  }

  #show(): void {
    if (this.#status !== "") this.#out.write(this.#status);
  }
}
