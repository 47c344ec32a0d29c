import assert from "node:assert/strict";
import { test } from "node:test";
import { type RetryPolicy, scheduledRetry } from "../core/retry-policy.ts";
import type { LoggedEvent } from "../ports/event-log.ts";
import { FinalFailure, failureOf, RetryLater } from "./failures.ts";
import { outcomeEvent } from "./outcome-event.ts";
import type { RequestView } from "./request-view.ts";

const NOW = Date.parse("2026-01-01T12:00:00Z");
const HOUR = 3_600_000;

const ASKING: LoggedEvent = {
  id: "0b9c1f8e-6d5a-4c3b-9a2f-1e0d7c6b5a49",
  type: "PayoutCreated.v1",
  stream: "payment.payout.request-core-r",
  revision: 0n,
  createdMs: NOW,
  data: { id: "r" },
  metadata: { correlationId: "corr" },
};
const VIEW: RequestView = { asking: ASKING, first: ASKING, attempt: 1, recorded: null, endedBy: null, last: 0n };
const TYPES = { completed: "PayoutCompleted.v1", failed: "PayoutFailed.v1", ended: [] };

function failed(thrown: unknown, retry: RetryPolicy | null, view: Partial<RequestView> = {}) {
  const failure = failureOf(thrown, NOW, HOUR);
  const execution = { kind: "failed", failure, atMs: NOW, draw: 0 } as const;
  const rules = { types: TYPES, retry, source: "service://payment/payout" };
  const { data, metadata } = outcomeEvent(execution, { ...VIEW, ...view }, { tenant: "core", requestId: "r" }, rules);
  const { notBefore } = metadata;
  const waitMs = notBefore === undefined ? null : Date.parse(String(notBefore)) - NOW;
  return { ...(data as { reason: string; final: boolean }), intent: metadata.intent, waitMs };
}

test("E6 Retry-After, in seconds or as a date, on an error or an answer, wins over a shorter delay and is bounded", () => {
  const later = "Thu, 01 Jan 2026 12:01:00 GMT";
  const thrown: readonly (readonly [unknown, number])[] = [
    [new RetryLater("busy", 60_000), 60_000],
    [Object.assign(new Error("busy"), { retryAfterMs: 60_000 }), 60_000],
    [new Response(null, { status: 429, headers: { "retry-after": "60" } }), 60_000],
    [new Response(null, { status: 503, headers: { "retry-after": later } }), 60_000],
    [Object.assign(new Error("busy"), { response: { status: 429, headers: { "Retry-After": "60" } } }), 60_000],
    [new Error("busy", { cause: { headers: { "retry-after": 60 } } }), 60_000],
    [new RetryLater("busy", 3), 10_000],
    [new Error("no word of it"), 10_000],
    [new Response(null, { status: 429, headers: { "retry-after": "soon" } }), 10_000],
    [new RetryLater("for ever", Number.POSITIVE_INFINITY), HOUR],
    [new RetryLater("nonsense", Number.NaN), 10_000],
    ["a mere text", 10_000],
    [undefined, 10_000],
  ];
  for (const [error, waitMs] of thrown) {
    const outcome = failed(error, scheduledRetry([10_000]));
    assert.deepEqual([outcome.intent, outcome.final, outcome.waitMs], ["outbox", false, waitMs], String(error));
  }
});

test("E6 no further try behind the last one, a final failure, or an end of the request; the domain decides by itself", () => {
  const error = new RetryLater("busy", 60_000);
  const none = { intent: undefined, final: true, waitMs: null };
  assert.partialDeepStrictEqual(failed(error, scheduledRetry([10]), { attempt: 2 }), none);
  assert.partialDeepStrictEqual(failed(new FinalFailure("closed"), scheduledRetry([10])), {
    ...none,
    reason: "closed",
  });
  assert.partialDeepStrictEqual(failed(error, scheduledRetry([10]), { endedBy: ASKING }), none);
  assert.partialDeepStrictEqual(failed(error, null), { intent: undefined, final: false, waitMs: 60_000 });
  assert.partialDeepStrictEqual(failed(new Error("no"), null), { intent: undefined, final: false, waitMs: null });
  assert.partialDeepStrictEqual(failed(new FinalFailure("no"), null), none);
});

test("E6 a reason is bounded and shows nothing of an object that was thrown", () => {
  assert.equal(failed(new Error("x".repeat(9_000)), null).reason.length, 500);
  assert.equal(failed({ token: "secret" }, null).reason, "a value that is not an Error was thrown");
  assert.equal(failed(new Response("secret", { status: 502 }), null).reason, "answered 502");
});

test("E6 the same outcome of the same event has the same id, and no other has it", () => {
  const rules = { types: TYPES, retry: null, source: "s" };
  const idOf = (result: unknown, asking = ASKING) =>
    outcomeEvent({ kind: "completed", result }, { ...VIEW, asking }, { tenant: "core", requestId: "r" }, rules).id;
  assert.equal(idOf({ a: 1 }), idOf({ a: 1 }));
  assert.match(idOf(1), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(new Set([idOf(1), idOf(2), idOf(1, { ...ASKING, id: "other" }), idOf(undefined)]).size, 4);
});
