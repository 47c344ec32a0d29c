import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { headerRows, headersIn, headersText } from "./header-rows.ts";
import { diffRows, jsonProblem, lineChange } from "./line-change.ts";
import { bytesOfBase64, hexText } from "./payload-bytes.ts";
import { fineText, preciseMs } from "./precise-time.ts";
import { standingOf } from "./standing.ts";
import { phasesOf } from "./waterfall-layout.ts";

const AT = "2026-11-16T10:00:00.000000Z";

test("F3 the waterfall keeps microseconds, and always fills its width", () => {
  assert.ok(Math.abs(preciseMs("2026-11-16T10:00:00.123456Z") - preciseMs(AT) - 123.456) < 0.001);
  const phases = phasesOf({
    writtenAt: AT,
    claimedAt: "2026-11-16T10:00:00.002500Z",
    sentAt: "2026-11-16T10:00:00.004000Z",
    durationMs: 6,
  });
  assert.deepEqual(
    phases.map(({ label, ms, isCut }) => [label, Number(ms.toFixed(3)), isCut]),
    [
      ["commit → claim", 2.5, false],
      ["claim → send", 1.5, false],
      ["send → answer", 6, false],
    ],
  );
  assert.deepEqual(
    phases.map(({ width }) => Number(width.toFixed(3))),
    [0.25, 0.15, 0.6],
  );
});

test("F3 a long wait is drawn shortened so that the other phases stay visible, and differing clocks give no negative time", () => {
  const [wait, relay, send] = phasesOf({
    writtenAt: "2026-11-16T08:00:00Z",
    claimedAt: AT,
    sentAt: "2026-11-16T10:00:00.010Z",
    durationMs: 30,
  });
  assert.ok(wait?.isCut && wait.width < 0.45);
  assert.ok((send?.width ?? 0) > 0.4 && (relay?.width ?? 0) > 0.1);
  const skewed = phasesOf({ writtenAt: "2026-11-16T10:00:01Z", claimedAt: AT, sentAt: AT, durationMs: 0 });
  assert.ok(skewed.every(({ ms, width }) => ms === 0 && width > 0));
  assert.deepEqual(phasesOf({ writtenAt: AT, claimedAt: null, sentAt: null, durationMs: null }), []);
});

test("F3 phases follow each other and end at the full width", () => {
  const ms = fc.option(fc.integer({ min: 0, max: 1e9 }), { nil: null });
  fc.assert(
    fc.property(ms, ms, ms, ms, (written, claimed, sent, duration) => {
      const time = (it: number | null) => (it === null ? null : new Date(it).toISOString());
      const phases = phasesOf({
        writtenAt: time(written),
        claimedAt: time(claimed),
        sentAt: time(sent),
        durationMs: duration,
      });
      let end = 0;
      for (const { x, width } of phases) {
        assert.ok(Math.abs(x - end) < 1e-9 && width > 0);
        end = x + width;
      }
      assert.ok(phases.length === 0 || Math.abs(end - 1) < 1e-9);
    }),
  );
});

test("F3 durations keep the digits that matter", () => {
  assert.deepEqual([0.4213, 12.34, 512.7, 1204].map(fineText), ["0.42 ms", "12.3 ms", "513 ms", "1.20 s"]);
});

test("F3 headers are compared with the sent ones, and edited ones are read back unchanged", () => {
  const rows = headerRows({ a: "1", b: "2", c: "3" }, { a: "1", b: "x", d: "4" });
  assert.deepEqual(
    rows.map(({ name, how }) => `${name} ${how}`),
    ["a same", "b changed", "c not sent", "d added"],
  );
  assert.equal(headerRows({ a: "1" }, null)[0]?.how, "unknown");
  const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,9}$/).filter((it) => it !== "constructor");
  fc.assert(
    fc.property(fc.dictionary(name, fc.string({ unit: "binary" })), (headers) => {
      assert.deepEqual({ ...headersIn(headersText(headers)) }, { ...headers });
    }),
  );
  const separators = { a: "one\u2028two\u2029three\r\nfour" };
  assert.deepEqual(headersIn(headersText(separators)), separators);
  assert.deepEqual(headersIn("a: 1\nnonsense"), { line: 2 });
});

test("F3 bytes are shown as hex with their characters", () => {
  assert.equal(hexText(bytesOfBase64("AEhpIf8=")), `000000  00 48 69 21 ff${" ".repeat(33)}  ·Hi!·`);
  assert.match(hexText(new Uint8Array(9_000)), /and 808 more bytes$/);
});

test("F3 an edited payload is compared line by line, and its numbers are never parsed", () => {
  assert.deepEqual(lineChange("a\nb\nc", "a\nx\ny\nc"), { line: 2, before: ["b"], after: ["x", "y"] });
  assert.deepEqual(lineChange("a\na", "a"), { line: 2, before: ["a"], after: [] });
  assert.equal(lineChange("a", "a"), null);
  assert.equal(jsonProblem('{"n":12345678901234567890}'), null);
  assert.notEqual(jsonProblem('{"n":}'), null);
});

test("F3 a diff shows removed and added lines with some context, and stays bounded", () => {
  const changes = (before: string, after: string) => diffRows(before, after).map(({ sign, text }) => `${sign}${text}`);
  assert.deepEqual(changes("a\nb\nc\nd\ne", "a\nb\nX\nd\ne"), [" a", " b", "−c", "+X", " d", " e"]);
  assert.deepEqual(changes("a", "a"), []);
  const lines = Array.from({ length: 12 }, (_, index) => `l${index}`);
  const changed = lines.with(0, "first").with(11, "last");
  assert.deepEqual(changes(lines.join("\n"), changed.join("\n")), [
    ...["−l0", "+first", " l1", " l2", "…", " l9", " l10", "−l11", "+last"],
  ]);
  const many = Array.from({ length: 5_000 }, (_, index) => `${index}`);
  assert.equal(changes(many.join("\n"), many.map((it) => `${it}x`).join("\n")).length, 201);
});

test("F3 the state of an event and the events that wait for it are described", () => {
  const hold = {
    ...{ pipeline: "p", lane: 0, state: "dead", parks: true, attempts: 5, firstFailedAt: AT, lastFailedAt: AT },
    errors: [],
  };
  const dead = { state: "dead" as const, key: "42", hold, parkedBehind: null, nextAttemptAt: null, ...WAITS };
  assert.match(
    standingOf({ ...dead, followers: { count: 1_000, isMore: true } }, null).what,
    /More than 1\u202f000 events .* wait/,
  );
  assert.match(standingOf({ ...dead, followers: { count: 1, isMore: false } }, null).what, /1 event of its key waits/);
  assert.doesNotMatch(standingOf({ ...dead, key: null, followers: null }, null).what, /key/);
});

const WAITS = { pipeline: "shop.outbox->crm", waitsFor: null };

test("F3 H1 an event that has not failed says what it waits for", () => {
  const event = { state: "pending" as const, key: "42", hold: null, followers: null, parkedBehind: null, ...WAITS };
  const pending = { ...event, nextAttemptAt: null };
  const calm = { destination: "crm", circuits: [], answers: null };
  const slow = { since: AT, presentMs: 3_000, usualMs: 20 };
  const window = { requests: 1, p50Ms: 3_000, p99Ms: 3_000 };
  const answers = { lastMinute: window, lastFiveMinutes: window, slow };
  const closed = { ...calm, circuits: [{ topic: null, reason: "503" }] };
  const said = (more: object, destination: Parameters<typeof standingOf>[1] = calm) =>
    standingOf({ ...pending, ...more }, destination).what;
  assert.equal(said({}), "Written and waiting for delivery.");
  assert.match(said({ state: "unrouted" }), /No route matches/);
  assert.match(said({ waitsFor: "paused" }), /shop\.outbox->crm is paused/);
  assert.match(said({ waitsFor: "scheduled", nextAttemptAt: AT }), /^Scheduled/);
  assert.match(said({}, closed), /crm accepts no events/);
  assert.equal(standingOf(pending, closed).reason, "503");
  assert.match(said({}, { ...calm, answers }), /crm is slow/);
});
