import assert from "node:assert/strict";
import { test } from "node:test";
import { ERROR_CATALOGUE, type ErrorCode, isRelayError, RelayError, reasonOf } from "./errors.ts";

test("an error says what happened, its code and what to do", () => {
  const error = new RelayError("TABLE_MISSING", "There is no table a.outbox.", { cause: "x" });
  assert.equal(error.message, `There is no table a.outbox. [TABLE_MISSING] ${ERROR_CATALOGUE.TABLE_MISSING.fix}`);
  assert.deepEqual([error.code, error.retryable, error.cause], ["TABLE_MISSING", true, "x"]);
});

test("every code has a fix that is a sentence", () => {
  for (const code of Object.keys(ERROR_CATALOGUE) as ErrorCode[])
    assert.match(ERROR_CATALOGUE[code].fix, /^[A-Z].*\.$/);
});

test("an error is recognised by its code", () => {
  const error = new RelayError("FENCED", "late");
  assert.ok(isRelayError(error) && isRelayError(error, "FENCED"));
  assert.ok(!isRelayError(error, "LEASE_LOST") && !isRelayError(new Error("late")) && !isRelayError(null));
});

test("a reason is one bounded text, whatever was thrown", () => {
  assert.equal(reasonOf(new Error("no")), "no");
  assert.equal(reasonOf(new TypeError("")), "TypeError");
  assert.equal(reasonOf("text"), "text");
  assert.equal(reasonOf(undefined), "undefined");
  const long = reasonOf("x".repeat(3_000));
  assert.ok(long.length === 2_000 && long.endsWith("…"));
});
