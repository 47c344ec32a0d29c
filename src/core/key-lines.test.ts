import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "./event.ts";
import { KeyLines } from "./key-lines.ts";
import { delivered, retry } from "./outcome.ts";

function linesOf(keys: readonly (string | null)[]) {
  const told: string[] = [];
  const batch = keys.map((key) => ({ event: { key } }) as Message);
  const lines = new KeyLines(batch, (index, { kind }) => told.push(`${index} ${kind}`));
  return { lines, told };
}

test("A3 the next of a key is ready when the one before it was delivered", () => {
  const { lines, told } = linesOf(["a", "b", "a", null, "a", null]);
  assert.deepEqual(lines.ready.splice(0), [0, 1, 3, 5]);
  lines.settle(0, delivered);
  assert.deepEqual(lines.ready.splice(0), [2]);
  lines.settle(1, delivered);
  lines.settle(3, delivered);
  assert.deepEqual(lines.ready, []);
  lines.settle(2, delivered);
  assert.deepEqual(lines.ready.splice(0), [4]);
  assert.deepEqual(told, ["0 delivered", "1 delivered", "3 delivered", "2 delivered"]);
});

test("F2 a failure keeps the rest of its key back, and no other", () => {
  const { lines, told } = linesOf(["a", "a", "b", "a", "b"]);
  lines.ready.splice(0);
  lines.settle(0, retry("no"));
  assert.deepEqual(told, ["0 retry", "1 skipped", "3 skipped"]);
  assert.deepEqual(lines.ready, []);
  lines.settle(2, delivered, false);
  assert.deepEqual(told.slice(3), ["2 delivered", "4 skipped"]);
});
