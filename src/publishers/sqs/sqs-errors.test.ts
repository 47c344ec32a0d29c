import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sqsSettings } from "./sqs-config.ts";
import { entryFailure, isAboutMessages, requestFailure } from "./sqs-errors.ts";

const settings = sqsSettings({ region: "eu-central-1", queue: "orders" });

function thrown(name: string, detail: object = {}): Error {
  return Object.assign(new Error("it says why"), {
    name,
    $fault: "client",
    $metadata: { httpStatusCode: 400 },
    ...detail,
  });
}

describe("requests to SQS that fail", () => {
  for (const [error, expected] of [
    [thrown("QueueDoesNotExist"), /"orders" in eu-central-1 does not exist/],
    [thrown("AWS.SimpleQueueService.NonExistentQueue"), /does not exist/],
    [thrown("AccessDenied", { $metadata: { httpStatusCode: 403 } }), /check the credentials/],
    [thrown("InvalidClientTokenId"), /check the credentials/],
    [thrown("KmsAccessDenied"), /check the credentials/],
    [thrown("CredentialsProviderError", { $fault: undefined }), /check the credentials/],
    [thrown("RequestThrottled"), /too many requests/],
    [thrown("ServiceUnavailable", { $fault: "server", $metadata: { httpStatusCode: 503 } }), /it says why/],
    [thrown("Error", { $fault: undefined, code: "ECONNREFUSED" }), /refused/],
    [thrown("Error", { $fault: undefined, code: "ENOTFOUND" }), /check region and endpoint/],
    [thrown("TimeoutError", { $fault: undefined }), /no answer in time/],
  ] as const) {
    test(`A4 A8 ${error.name} ${"code" in error ? error.code : ""} is the destination's failure`, () => {
      const outcome = requestFailure(settings, error);
      assert.ok(outcome.kind === "retry" && outcome.scope === "destination", JSON.stringify(outcome));
      assert.match(outcome.reason, expected);
      assert.equal(isAboutMessages(error), false);
    });
  }

  test("A8 throttling waits, as long as the service says", () => {
    const outcome = requestFailure(settings, thrown("ThrottlingException"));
    assert.ok(outcome.kind === "retry" && outcome.afterMs === 1_000);
    const failure = requestFailure(
      settings,
      thrown("RequestThrottled", { $response: { headers: { "retry-after": "7" } } }),
    );
    assert.ok(failure.kind === "retry" && failure.afterMs === 7_000);
  });

  for (const name of ["BatchRequestTooLong", "InvalidMessageContents", "InvalidAttributeValue"]) {
    test(`C5 ${name} is about the messages, and final for a single one`, () => {
      assert.equal(isAboutMessages(thrown(name)), true);
      assert.equal(requestFailure(settings, thrown(name)).kind, "rejected");
    });
  }

  test("C5 an unknown complaint about a single message is held against it", () => {
    const outcome = requestFailure(settings, thrown("Puzzling"));
    assert.ok(outcome.kind === "retry" && outcome.scope === "event");
  });
});

describe("entries that SQS refuses", () => {
  for (const [Code, SenderFault, kind, scope] of [
    ["InvalidMessageContents", true, "rejected", "event"],
    ["InvalidParameterValue", true, "rejected", "event"],
    ["Puzzling", true, "retry", "event"],
    ["InternalError", false, "retry", "destination"],
    ["RequestThrottled", true, "retry", "destination"],
  ] as const) {
    test(`C5 ${Code} with SenderFault ${SenderFault} is ${kind} of scope ${scope}`, () => {
      const outcome = entryFailure(settings, { Code, SenderFault, Message: "why" });
      assert.ok(outcome.kind === kind && outcome.scope === scope, JSON.stringify(outcome));
    });
  }
});
