import assert from "node:assert/strict";
import { test } from "node:test";
import { type AttemptOfEvent, withRemembered } from "./attempts.ts";
import { numbered } from "./event-content.ts";
import { isId } from "./event-filter.ts";
import { shownPayload } from "./event-payload.ts";

test("an id that does not fit a table's type matches nothing, and is not an error", () => {
  const uuid = "0198C7A0-0000-7000-8000-000000000001";
  const possible: [string, string][] = [
    ["uuid", uuid],
    ["smallint", "32767"],
    ["bigint", "-9223372036854775808"],
    ["bigint", "9223372036854775807"],
    ["text", "anything at all"],
  ];
  const impossible: [string, string][] = [
    ["uuid", "7"],
    ["uuid", `${uuid}0`],
    ["smallint", "32768"],
    ["integer", "2147483648"],
    ["bigint", "9223372036854775808"],
    ["bigint", "1.5"],
    ["bigint", ""],
    ["text", "a\0b"],
  ];
  for (const [type, text] of possible) assert.ok(isId(type, text), `${type} ${text}`);
  for (const [type, text] of impossible) assert.ok(!isId(type, text), `${type} ${text}`);
});

test("a payload is text where it is UTF-8, also when it is cut within a character, and else base64", () => {
  const text = '{"id": 9007199254740993, "name": "grün 😀"}\uFEFF\0';
  const bytes = Buffer.from(text);
  assert.deepEqual(shownPayload(bytes, bytes.length), {
    encoding: "utf-8",
    text,
    bytes: bytes.length,
    isTruncated: false,
  });
  const cut = shownPayload(Buffer.from("grün").subarray(0, 3), 5);
  assert.deepEqual([cut.encoding, cut.text, cut.isTruncated], ["utf-8", "gr", true]);
  const binary = Buffer.from([0xff, 0x00, 0x01]);
  assert.deepEqual(shownPayload(binary, 3), { encoding: "base64", text: "/wAB", bytes: 3, isTruncated: false });
  assert.equal(
    shownPayload(Buffer.from("grün").subarray(0, 3), 3).encoding,
    "base64",
    "a partial character is not text",
  );
});

test("F1 H1 attempt numbers continue after a replay, per pipeline, recorded or only remembered", () => {
  const at = (minute: number) => `2026-01-02T03:${String(minute).padStart(2, "0")}:00.000Z`;
  const recorded = (minute: number, attempt: number, pipeline = "p") =>
    ({ at: at(minute), pipeline, outcome: "failed", attempt, reason: "r" }) as AttemptOfEvent;
  // Three attempts, of which the second was not recorded; then a replay with two attempts.
  const errors = [1, 2, 3, 1, 2].map((attempt, index) => ({ at: at(index * 5), attempt, reason: "r" }));
  const shown = withRemembered(
    [recorded(0, 1), recorded(10, 3), recorded(15, 1), recorded(17, 1, "q"), recorded(20, 2)],
    [{ pipeline: "p", errors }],
  );
  assert.deepEqual(
    shown.map(({ attempt, pipeline }) => `${pipeline}${attempt}`),
    ["p1", "p2", "p3", "p4", "q1", "p5"],
  );
  assert.deepEqual(
    numbered(errors).map(({ attempt }) => attempt),
    [1, 2, 3, 4, 5],
  );
});
