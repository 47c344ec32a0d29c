import assert from "node:assert/strict";
import { test } from "node:test";
import { filtersOverlap } from "./filter-overlap.ts";
import type { TypeFilter } from "./type-filter.ts";

const mine = (...patterns: string[]): TypeFilter => patterns.map((pattern) => ({ pattern, mine: true }));
const rest = (...others: string[]): TypeFilter => [
  ...others.map((pattern) => ({ pattern, mine: false })),
  { pattern: "*", mine: true },
];

test("H1 two pipelines overlap when both take some type, and not when routes divide the types", () => {
  for (const [left, right, overlap] of [
    [null, null, true],
    [null, mine("order.placed"), true],
    [mine("order.*"), mine("order.placed"), true],
    [mine("order.*"), mine("payment.*"), false],
    [mine("a"), rest("a"), false],
    [mine("a", "b"), rest("a"), true],
    [mine("order.*"), rest("order.*"), false],
    [rest("a"), rest("b"), true],
    [null, [], false],
    [null, [{ pattern: "*", when: [{ field: "key", patterns: ["x"] }], mine: true }], false],
  ] as const) {
    assert.equal(filtersOverlap(left, right), overlap, JSON.stringify([left, right]));
    assert.equal(filtersOverlap(right, left), overlap, JSON.stringify([right, left]));
  }
});
