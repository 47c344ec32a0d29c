import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ErrorCode, RelayError } from "../core/errors.ts";
import { isConditionFailure, translateError } from "./dynamodb-errors.ts";
import { dynamodbOutbox } from "./dynamodb-outbox.ts";
import { newIntentItem } from "./new-intent.ts";

function clientError(fields: object): Error {
  return Object.assign(new Error("said so"), fields);
}

describe("errors of DynamoDB", () => {
  for (const [fields, code] of [
    [{ name: "ProvisionedThroughputExceededException" }, "DATABASE_BUSY"],
    [{ name: "ThrottlingException" }, "DATABASE_BUSY"],
    [{ name: "TransactionConflictException" }, "DATABASE_BUSY"],
    [{ name: "ResourceNotFoundException" }, "TABLE_MISSING"],
    [{ name: "AccessDeniedException" }, "GRANT_MISSING"],
    [{ name: "UnrecognizedClientException" }, "DATABASE_REFUSED"],
    [{ name: "TimeoutError" }, "DATABASE_UNREACHABLE"],
    [{ code: "ECONNREFUSED" }, "DATABASE_UNREACHABLE"],
    [{ name: "InternalServerError", $metadata: { httpStatusCode: 500 } }, "DATABASE_UNREACHABLE"],
    [{ name: "ValidationException", message: "Item size has exceeded the maximum allowed size" }, "EVENT_TOO_LARGE"],
    [{ message: "Region is missing" }, "CONFIG_INVALID"],
    [{ name: "ValidationException" }, "DATABASE_REFUSED"],
  ] satisfies [object, ErrorCode][]) {
    test(`D5 ${JSON.stringify(fields)} is ${code}`, () => {
      const error = translateError(clientError(fields), "reading");
      assert.equal(error.code, code);
      assert.match(error.message, /^DynamoDB, reading: /);
    });
  }

  test("D5 a transaction that was cancelled for want of capacity is busy, not a condition that failed", () => {
    const CancellationReasons = [{ Code: "ConditionalCheckFailed" }, { Code: "ThrottlingError" }];
    const busy = translateError(clientError({ name: "TransactionCanceledException", CancellationReasons }), "moving");
    assert.deepEqual([busy.code, isConditionFailure(busy)], ["DATABASE_BUSY", false]);
    const reasons = [{ Code: "None" }, { Code: "ConditionalCheckFailed" }];
    const failed = translateError(
      clientError({ name: "TransactionCanceledException", CancellationReasons: reasons }),
      "moving",
    );
    assert.equal(isConditionFailure(failed), true);
  });

  test("D5 what is ours already stays as it is", () => {
    const ours = new RelayError("DATABASE_BUSY", "x");
    assert.equal(translateError(ours, "y"), ours);
  });
});

describe("what cannot be written", () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  for (const [expected, intent] of [
    ["id is empty", { id: "" }],
    ["id has 2049 bytes", { id: "x".repeat(2_049) }],
    ["type is not a string", { type: 7 }],
    ["type is empty", { type: "" }],
    ["key is not a string", { key: 7 }],
    ["headers is not an object", { headers: null }],
    ['the header "a" is not a string', { headers: { a: 1 } }],
    ["a header has no name", { headers: { "": "x" } }],
    ["correlationId is not a string", { correlationId: {} }],
    ["a lone surrogate", { payload: "\ud800" }],
    ["payload is missing", { payload: undefined }],
    ["as JSON", { payload: circle }],
  ] as const) {
    test(`D3 ${expected}: refused with EVENT_INVALID`, () => {
      const bad = { type: "Notify", payload: "{}", ...intent } as unknown as Parameters<typeof newIntentItem>[0];
      const isTold = (error: unknown) =>
        error instanceof RelayError && error.code === "EVENT_INVALID" && error.message.includes(expected);
      assert.throws(() => newIntentItem(bad, Date.now(), 0), isTold);
    });
  }

  for (const [expected, options] of [
    ["table is", { table: "no table" }],
    ["deadLetterTable is", { deadLetterTable: "" }],
    ["both", { table: "same", deadLetterTable: "same" }],
    ["sweepAfterMs", { sweepAfterMs: -1 }],
  ] as const) {
    test(`D3 options with ${JSON.stringify(options)} are refused by name`, () => {
      const isTold = (error: unknown) =>
        error instanceof RelayError && error.code === "CONFIG_INVALID" && error.message.includes(expected);
      assert.throws(() => dynamodbOutbox(options), isTold);
    });
  }
});
