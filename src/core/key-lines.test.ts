import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "./event.ts";
import { KeyLines } from "./key-lines.ts";
import { delivered, retry } from "./outcome.ts";

function linesOf(keys: readonly (string | null)[]) {
  const reported: string[] = [];
  const batch = keys.map((key) => ({ event: { key } }) as Message);
  const lines = new KeyLines(batch, (index, { kind }) => reported.push(`${index} ${kind}`));
  return { lines, reported };
}

test("A3 the next message of a key is ready when the one before it was delivered", () => {
  const { lines, reported } = linesOf(["a", "b", "a", null, "a", null]);
  assert.deepEqual(lines.ready.splice(0), [0, 1, 3, 5]);
  lines.settle(0, delivered);
  assert.deepEqual(lines.ready.splice(0), [2]);
  lines.settle(1, delivered);
  lines.settle(3, delivered);
  assert.deepEqual(lines.ready, []);
  lines.settle(2, delivered);
  assert.deepEqual(lines.ready.splice(0), [4]);
  assert.deepEqual(reported, ["0 delivered", "1 delivered", "3 delivered", "2 delivered"]);
});

test("F2 a failure keeps back the rest of its key, and no other key", () => {
  const { lines, reported } = linesOf(["a", "a", "b", "a", "b"]);
  lines.ready.splice(0);
  lines.settle(0, retry("no"));
  assert.deepEqual(reported, ["0 retry", "1 skipped", "3 skipped"]);
  assert.deepEqual(lines.ready, []);
  lines.settle(2, delivered, false);
  assert.deepEqual(reported.slice(3), ["2 delivered", "4 skipped"]);
});
