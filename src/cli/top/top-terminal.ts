import type { ReadStream, WriteStream } from "node:tty";
import { isColoured } from "../terminal/plain-text.ts";
import type { ScreenSize } from "./top-screen.ts";

const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const CTRL_C = "\u0003";
const END_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Draws on the terminal's alternate screen until the user quits, and restores the main screen in any case. */
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

  /** Aborted by q, Ctrl-C and termination signals. */
  get signal(): AbortSignal {
    return this.#leaving.signal;
  }

  get size(): ScreenSize {
    return { columns: this.#output.columns || 80, rows: this.#output.rows || 24 };
  }

  get isColoured(): boolean {
    return isColoured(this.#output);
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

  /** Overwrites in place and clears the rest of each line, so that nothing flickers. */
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
