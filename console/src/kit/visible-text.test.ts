import assert from "node:assert/strict";
import { test } from "node:test";
import { cutText, visibleParts, visibleText } from "./visible-text.ts";

test("H1 invisible and direction-changing characters are shown as marks, and an empty text as (empty)", () => {
  assert.equal(visibleText("a\u202egpj.exe"), "a\\u202egpj.exe");
  assert.equal(visibleText("\0\u200b\u2066\u{e0041}\ud800"), "\\u0000\\u200b\\u2066\\u{e0041}\\ud800");
  assert.equal(visibleText(""), "(empty)");
  assert.equal(visibleText("Größe 東京 🎉 عربي"), "Größe 東京 🎉 عربي");
  assert.deepEqual(visibleParts("a\r\n\tb\r\u0007", true), [
    { text: "a\r\n\tb", isMark: false },
    { text: "\\u000d", isMark: true },
    { text: "\\u0007", isMark: true },
  ]);
});

test("H1 a long text is truncated, and never within a character", () => {
  assert.equal(cutText("abcdef", 4), "abc…");
  assert.equal(cutText("ab🎉def", 4), "ab…");
  assert.equal(cutText("abcd", 4), "abcd");
  assert.equal(visibleText("x".repeat(3_000), 100).length, 100);
});
