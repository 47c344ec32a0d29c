import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isRelayError } from "../../core/errors.ts";
import { type SqsPublisherOptions, sqsSettings } from "./sqs-config.ts";

const right = { region: "eu-central-1", queue: "orders" };

describe("the options of SQS", () => {
  test("G2 the name distinguishes a FIFO queue from a standard one, and defaults are filled in", () => {
    assert.equal(sqsSettings(right).isFifo, false);
    const settings = sqsSettings({ ...right, queue: "orders.fifo" });
    assert.deepEqual([settings.isFifo, settings.name, settings.bytesMax], [true, "sqs", 1_048_576]);
  });

  for (const [expected, changes] of [
    ["queue's name is missing", { queue: "" }],
    ["queue's name", { queue: "or ders" }],
    ["queue's name", { queue: "orders.fif" }],
    ["80 characters", { queue: "x".repeat(81) }],
    ["region", { region: "Frankfurt" }],
    ["account", { account: "12" }],
    ["endpoint", { endpoint: "localhost" }],
    ["endpoint", { endpoint: "ftp://localhost" }],
    ["bytesMax", { bytesMax: -1 }],
  ] satisfies [string, Partial<SqsPublisherOptions>][]) {
    test(`G2 ${JSON.stringify(changes).slice(0, 60)} is refused by name`, () => {
      assert.throws(
        () => sqsSettings({ ...right, ...changes }),
        (error) => isRelayError(error, "CONFIG_INVALID") && error.message.includes(expected),
      );
    });
  }
});
