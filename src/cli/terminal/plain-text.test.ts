import assert from "node:assert/strict";
import { test } from "node:test";
import { textTable } from "./output.ts";
import { guardTerminal, plainLine, plainLines } from "./plain-text.ts";

const HOSTILE = "a\u001b]0;owned\u0007b\u009b2J\u202ec\r\nd";

test("H1 A20 a text of an event is shown, and cannot control the terminal", () => {
  assert.equal(plainLine(HOSTILE), "a\\u001b]0;owned\\u0007b\\u009b2J\\u202ec\\u000d\\u000ad");
  assert.equal(plainLines("one\ttwo\nthree\u001b[2K"), "one\ttwo\nthree\\u001b[2K");
  assert.equal(plainLine("Grüße, 世界 🎉"), "Grüße, 世界 🎉");
});

test("H1 A20 a table cell stays in its line", () => {
  const text = textTable(["KEY", "ID"], [["a\nFORGED  1", 1]]);
  assert.deepEqual(text.split("\n").slice(1), ["a\\u000aFORGED  1   1", ""]);
});

test("H1 A20 a guarded stream keeps our own sequences and bytes, and JSON stays JSON", () => {
  const written: (string | Uint8Array)[] = [];
  const stream = { write: (chunk: string | Uint8Array) => written.push(chunk) > 0 };
  guardTerminal(stream);
  stream.write("\r\u001b[2K50 %");
  stream.write("\u001b[H\u001b[2Jtable\u001b[2J\n");
  stream.write(`${JSON.stringify({ key: HOSTILE })}\n`);
  stream.write(Buffer.from("\u001b"));
  assert.deepEqual(written.slice(0, 2), ["\r\u001b[2K50 %", "\u001b[H\u001b[2Jtable\\u001b[2J\n"]);
  assert.deepEqual(JSON.parse(String(written[2])), { key: HOSTILE });
  assert.doesNotMatch(String(written[2]), /\u202e|\u009b/);
  assert.deepEqual(written[3], Buffer.from("\u001b"));
});
