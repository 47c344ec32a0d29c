import assert from "node:assert/strict";
import { test } from "node:test";
import { agoText, bytesText, countText, durationText, plural, rateText, shortCount } from "./format.ts";

test("G4 durations have two units at most", () => {
  const shown = [null, 0, 850, 4_200, 42_000, 185_000, 3_600_000, 7_800_000, 442_800_000].map(durationText);
  assert.deepEqual(shown, ["–", "0 ms", "850 ms", "4.2 s", "42 s", "3 min 5 s", "1 h", "2 h 10 min", "5 d 3 h"]);
});

test("G4 times are relative to now, and small clock differences show no future time", () => {
  const now = 1_700_000_000_000;
  const shown = [0, -1_500, 5_000, 90_000, 7_200_000, 400_000_000, -30_000].map((ms) => agoText(now - ms, now));
  assert.deepEqual(shown, ["just now", "just now", "5 s ago", "2 min ago", "2 h ago", "5 d ago", "in 30 s"]);
});

test("G4 figures stay readable and exact where they must", () => {
  assert.equal(countText("18446744073709551615"), "18\u202f446\u202f744\u202f073\u202f709\u202f551\u202f615");
  assert.equal(countText(1234.5), "1\u202f234.5");
  assert.deepEqual([null, 0, 9_999, 12_840, 540_000, 3_100_000].map(shortCount), [
    "–",
    "0",
    "9\u202f999",
    "12.8k",
    "540k",
    "3.1M",
  ]);
  assert.deepEqual([null, 0, 0.02, 3.24, 431.2, 12_345].map(rateText), ["–", "0", "< 0.1", "3.2", "431", "12.3k"]);
  assert.deepEqual([null, 12, 2_048, 3_200_000_000].map(bytesText), ["–", "12 B", "2.0 KiB", "3.0 GiB"]);
  assert.deepEqual([plural(1, "event"), plural(2, "crash", "crashes")], ["1 event", "2 crashes"]);
});
