import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { type ReadStream, WriteStream } from "node:tty";
import { TopTerminal } from "./top-terminal.ts";

class FakeInput extends EventEmitter {
  readonly isTTY = true;
  isRaw = false;
  setRawMode(isRaw: boolean) {
    this.isRaw = isRaw;
    return this;
  }
  resume = () => this;
  pause = () => this;
}

function scene() {
  const input = new FakeInput();
  const written: string[] = [];
  const output = Object.assign(new EventEmitter(), {
    ...{ columns: 50, rows: 0, isTTY: true, write: (text: string) => written.push(text) },
    // As with a real terminal, the environment decides about colours.
    getColorDepth: WriteStream.prototype.getColorDepth,
  });
  const terminal = new TopTerminal(input as unknown as ReadStream, output as unknown as WriteStream);
  return { input, terminal, text: () => written.join("") };
}

for (const [name, keys, leaves] of [
  ["q", "q", true],
  ["Ctrl-C", "\u0003", true],
  ["another key", "x", false],
] as const) {
  test(`G6 ${name} ${leaves ? "ends" : "does not end"} the view, and the terminal is restored`, () => {
    const { input, terminal, text } = scene();
    const listeners = process.listenerCount("SIGINT");
    terminal.open();
    assert.deepEqual([input.isRaw, terminal.size], [true, { columns: 50, rows: 24 }]);
    terminal.draw(["one", "two"]);
    input.emit("data", Buffer.from(keys));
    assert.equal(terminal.signal.aborted, leaves);
    terminal.close();
    terminal.close();
    terminal.draw(["too late"]);
    assert.deepEqual(
      [input.isRaw, input.listenerCount("data"), process.listenerCount("SIGINT")],
      [false, 0, listeners],
    );
    assert.equal(text(), "\u001b[?1049h\u001b[?25l\u001b[Hone\u001b[K\r\ntwo\u001b[K\u001b[J\u001b[?25h\u001b[?1049l");
  });
}

test("G6 colours are off on request", (context) => {
  const before = { ...process.env };
  context.after(() => {
    process.env = before;
  });
  const { terminal } = scene();
  // No other variables: with CI set, Node assumes a terminal without colours.
  process.env = { NO_COLOR: "", TERM: "xterm" };
  assert.equal(terminal.isColoured, true);
  process.env.NO_COLOR = "1";
  assert.equal(terminal.isColoured, false);
  process.env = { NO_COLOR: "", TERM: "dumb" };
  assert.equal(terminal.isColoured, false);
});
