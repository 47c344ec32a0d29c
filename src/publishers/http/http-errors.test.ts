import assert from "node:assert/strict";
import { test } from "node:test";
import type { FailureScope } from "../../core/outcome.ts";
import { outcomeOf } from "./http-errors.ts";

const NOW = Date.UTC(2026, 0, 1, 12, 0, 0);

function sorted(status: number, headers: Readonly<Record<string, string>> = {}, scope: FailureScope = "destination") {
  const answer = { kind: "answered", status, header: (name: string) => headers[name], body: Buffer.alloc(0) } as const;
  return outcomeOf(answer, { scope, shown: "https://host", wallMs: NOW, retryAfterMsMax: 900_000, said: "" });
}

function briefly(status: number, scope: FailureScope = "destination"): string {
  const outcome = sorted(status, {}, scope);
  assert.ok(typeof outcome === "object");
  return "scope" in outcome ? `${outcome.kind} ${outcome.scope}` : outcome.kind;
}

function failed(code: string, wasSent: boolean, scope: FailureScope = "destination") {
  const error = Object.assign(new Error("oh"), { code });
  return outcomeOf(
    { kind: "failed", error, wasSent },
    { scope, shown: "https://host", wallMs: NOW, retryAfterMsMax: 1, said: "" },
  );
}

test("D4 every status is sorted: delivered, the address's, the event's, refused", () => {
  const groups = {
    delivered: [200, 201, 202, 204, 299],
    "retry destination": [300, 301, 307, 401, 402, 403, 404, 405, 407, 408, 410, 425, 426, 429, 502, 503, 504, 521],
    "retry event": [409, 423, 424, 500, 501, 505, 507, 599],
    "rejected event": [400, 406, 411, 412, 413, 414, 415, 418, 422, 428, 431, 451, 499],
  };
  for (const [expected, statuses] of Object.entries(groups)) {
    for (const status of statuses) assert.equal(briefly(status), expected, String(status));
  }
});

test("where the address depends on the event, its failures reach no further", () => {
  assert.deepEqual([briefly(404, "topic"), briefly(429, "event")], ["retry topic", "retry event"]);
  assert.partialDeepStrictEqual(failed("ECONNRESET", true, "event"), { kind: "retry", scope: "event" });
  assert.partialDeepStrictEqual(failed("ECONNREFUSED", false, "topic"), { kind: "retry", scope: "topic" });
});

test("A4 Retry-After counts in seconds and as a date of each form, and is bounded", () => {
  const cases: readonly (readonly [string, number | undefined])[] = [
    ["30", 30_000],
    ["0", 0],
    ["99999999", 900_000],
    ["Thu, 01 Jan 2026 12:01:00 GMT", 60_000],
    ["Thursday, 01-Jan-26 12:01:00 GMT", 60_000],
    ["Thu Jan  1 12:01:00 2026", 60_000],
    ["Thu, 01 Jan 2026 11:00:00 GMT", 0],
    ["Fri, 01 Jan 2027 12:00:00 GMT", 900_000],
    ["soon", undefined],
    ["", undefined],
    ["-5", undefined],
    ["9".repeat(200), undefined],
  ];
  for (const [written, expected] of cases) {
    for (const status of [429, 503]) {
      const outcome = sorted(status, { "retry-after": written }) as { afterMs?: number; scope: string };
      assert.deepEqual([outcome.afterMs, outcome.scope], [expected, "destination"], written);
    }
  }
});

test("A20 a redirect names the host alone", () => {
  for (const [location, shown] of [
    ["https://user:pass@other.example:8443/secret?token=1", " to https://other.example:8443;"],
    ["/login?token=1", " to https://host;"],
    ["https://[", "Found;"],
  ] as const) {
    const { reason } = sorted(302, { location }) as { reason: string };
    assert.ok(reason.includes(shown), reason);
    assert.doesNotMatch(reason, /pass|token|secret|login/);
  }
});

test("A4 errors of the connection have their reason in plain words, and no answer to what was sent is unknown", () => {
  for (const [code, words] of [
    ["ECONNREFUSED", /nothing listens there/],
    ["ENOTFOUND", /the host name is unknown/],
    ["CERT_HAS_EXPIRED", /certificate has expired/],
    ["ERR_SSL_WRONG_VERSION_NUMBER", /may not speak TLS/],
    ["EODD", /oh \(EODD\)/],
  ] as const) {
    const outcome = failed(code, false) as { kind: string; scope: string; reason: string };
    assert.deepEqual([outcome.kind, outcome.scope], ["retry", "destination"]);
    assert.match(outcome.reason, words);
  }
  assert.equal(failed("ECONNRESET", true), "unknown");
  assert.partialDeepStrictEqual(failed("UND_ERR_INVALID_ARG", false), { kind: "rejected" });
});
