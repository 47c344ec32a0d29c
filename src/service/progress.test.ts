import assert from "node:assert/strict";
import { test } from "node:test";
import { countBar } from "./progress.ts";

test("G6 a bulk job shows a bar on a terminal, clears it at the end, and prints nothing without a terminal", () => {
  const written: string[] = [];
  const write = (text: string) => void written.push(text);
  const bar = countBar({ isTTY: true, write });
  bar.show(500, 1_000);
  assert.match(written.at(-1) ?? "", /█{12}░{12} 500 of 1,000$/);
  bar.show(0, 0);
  bar.end();
  assert.equal(written.at(-1), "\r\u001b[2K");
  const before = written.length;
  const silent = countBar({ isTTY: false, write });
  silent.show(1, 2);
  silent.end();
  assert.equal(written.length, before);
});
