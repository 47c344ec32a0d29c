import type { ReadStream, WriteStream } from "node:tty";
import type { ScreenSize } from "./top-screen.ts";

const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const CTRL_C = "\u0003";
const END_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The other screen of a terminal, drawn on until somebody wants to leave. Whatever happens, the first one comes back. */
export class TopTerminal {
  readonly #input: ReadStream;
  readonly #output: WriteStream;
  readonly #leaving = new AbortController();
  readonly #leave = () => this.#leaving.abort();
  readonly #restore = () => this.close();
  readonly #pressed = (keys: Buffer) => {
    const text = keys.toString();
    if (text.includes(CTRL_C) || /^[qQ]/.test(text)) this.#leave();
  };
  #isOpen = false;

  constructor(input: ReadStream, output: WriteStream) {
    this.#input = input;
    this.#output = output;
  }

  /** Aborted by q, by Ctrl-C and by the signals that end a program. */
  get signal(): AbortSignal {
    return this.#leaving.signal;
  }

  get size(): ScreenSize {
    return { columns: this.#output.columns || 80, rows: this.#output.rows || 24 };
  }

  get isColoured(): boolean {
    const { NO_COLOR, TERM } = process.env;
    return (NO_COLOR ?? "") === "" && TERM !== "dumb";
  }

  open(): void {
    this.#isOpen = true;
    for (const signal of END_SIGNALS) process.on(signal, this.#leave);
    process.on("exit", this.#restore);
    if (this.#input.isTTY) {
      this.#input.setRawMode(true);
      this.#input.on("data", this.#pressed).resume();
    }
    this.#output.write(ENTER);
  }

  /** Each line wipes what is left of the one before: nothing flickers. */
  draw(lines: readonly string[]): void {
    if (this.#isOpen) this.#output.write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join("\r\n")}\u001b[J`);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const signal of END_SIGNALS) process.off(signal, this.#leave);
    process.off("exit", this.#restore);
    if (this.#input.isTTY) {
      this.#input.off("data", this.#pressed).pause();
      this.#input.setRawMode(false);
    }
    this.#output.write(LEAVE);
  }
}
