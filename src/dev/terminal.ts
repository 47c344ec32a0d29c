import { styleText } from "node:util";
import type { LiveState, Snapshot } from "./live-state.ts";

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

const PLAIN_EVERY = 10;

/** Current rates: a line updated in place on a terminal, otherwise a plain line every ten seconds. */
export class StatusLines {
  readonly #unwatch: () => void;
  #seen = 0;

  constructor(terminal: Terminal, live: LiveState) {
    this.#unwatch = live.watch((state) => {
      const line = lineOf(state);
      if (line === null) return;
      if (terminal.isTerminal) terminal.status(line);
      else if (this.#seen % PLAIN_EVERY === 0) terminal.say(line);
      this.#seen += 1;
    });
  }

  stop(): void {
    this.#unwatch();
  }
}

function lineOf({ flow }: Snapshot): string | null {
  if (flow === null) return null;
  const count = (value: number) => Math.round(value).toLocaleString("en-US");
  const lag = `${(flow.lagMs / 1_000).toFixed(1)} s`;
  return `in ${count(flow.inPerS)}/s   out ${count(flow.outPerS)}/s   waiting ${count(flow.waiting)}   lag ${lag}   delivered ${count(flow.delivered)}`;
}
