import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isRelayError } from "../../../core/errors.ts";
import { readPosition, writePosition } from "./checkpoint-text.ts";
import { BEGINNING, type Difference, endedSince, keyOf, parseSnapshot } from "./difference.ts";
import { decodeMarks, encodeMarks } from "./marks.ts";

const segment: Difference = { from: "10:20:10,15", to: "15:30:15,22" };

test("positions survive being written, in whatever order they come, up to the largest", () => {
  const position = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }));
  fc.assert(
    fc.property(fc.array(position, { maxLength: 200 }), (marks) => {
      assert.deepEqual(decodeMarks(encodeMarks(marks)), new Set(marks.toSorted((left, right) => left - right)));
    }),
  );
  const inARow = Array.from({ length: 10_000 }, (_, index) => index + 1_000_000);
  assert.ok(encodeMarks(inARow).length < 12);
  for (const text of ["-1", "1  2", "x y!", "1+zzzzzzzz", "zzzzzzzzzzzzz"]) assert.equal(decodeMarks(text), null, text);
});

test("a place is written with what is ahead of it, and without what only memory knows", () => {
  const text = writePosition({ segment: { ...segment, incarnation: "1" }, mark: 5 }, [
    { mark: 9 },
    { mark: 3 },
    { mark: 7 },
  ]);
  assert.doesNotMatch(text, /incarnation/);
  const { place, ahead } = readPosition(text, "t", "difference");
  assert.deepEqual(place, { segment, mark: 5 });
  assert.deepEqual([...ahead], [3, 7, 9]);
});

test("a place of one way to read is none of the other", () => {
  const along = writePosition({ segment: { from: BEGINNING, to: null }, mark: 5 }, []);
  assert.equal(readPosition(along, "t", "horizon").place.mark, 5);
  for (const [text, way] of [
    [along, "difference"],
    [writePosition({ segment, mark: 5 }, []), "horizon"],
  ] as const) {
    assert.throws(
      () => readPosition(text, "t", way),
      (error) => isRelayError(error, "LOG_LOST"),
    );
  }
});

test("of the transactions that were running, a difference has those that are over in the newer snapshot", () => {
  assert.deepEqual(endedSince(segment), [10n]);
  assert.deepEqual(endedSince({ ...segment, to: null }), [10n, 15n]);
  assert.deepEqual(endedSince({ from: "10:20:", to: "30:30:" }), []);
  assert.deepEqual(parseSnapshot("7:7:"), { end: 7n, running: [] });
  assert.throws(
    () => parseSnapshot("7:7"),
    (error) => isRelayError(error, "LOG_LOST"),
  );
});

test("equal texts are one difference, whatever else is known of them", () => {
  assert.equal(keyOf({ ...segment, incarnation: "a" }), keyOf(segment));
  assert.notEqual(keyOf(segment), keyOf({ ...segment, to: null }));
});
