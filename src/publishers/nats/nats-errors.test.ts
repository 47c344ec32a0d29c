import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { unreachable } from "../../core/connection-cause.ts";
import { natsSettings } from "./nats-config.ts";
import { connectionReason, outcomeOf } from "./nats-errors.ts";

const settings = natsSettings({ servers: ["a:4222"], user: "relay", password: "hunter2", stream: "ORDERS" });

function answered(text: string) {
  return outcomeOf("order.placed", { kind: "text", text }, settings);
}

function refused(errorCode: number, code: number, description = "it says why") {
  return answered(JSON.stringify({ error: { code, err_code: errorCode, description }, stream: "ORDERS", seq: 0 }));
}

describe("the answers of NATS", () => {
  test("D4 D8 an acknowledgement is a delivery, that of a repetition too", () => {
    assert.deepEqual(answered('{"stream":"ORDERS", "seq":7}'), { kind: "delivered" });
    assert.deepEqual(answered('{"stream":"ORDERS", "seq":7,"duplicate": true}'), { kind: "delivered" });
  });

  for (const [what, errorCode, code, scope] of [
    ["a wrong stream", 10_060, 400, "topic"],
    ["a full stream", 10_077, 503, "topic"],
    ["a sealed stream", 10_109, 400, "topic"],
    ["a stream without a leader", 10_009, 500, "topic"],
    ["a full disk", 10_047, 500, "destination"],
    ["a full memory", 10_028, 500, "destination"],
    ["no resources", 10_023, 503, "destination"],
    ["the account's limit", 10_002, 400, "destination"],
    ["JetStream switched off", 10_076, 503, "destination"],
    ["JetStream switched off for the account", 10_039, 503, "destination"],
    ["JetStream without a quorum", 10_008, 503, "destination"],
    ["an unknown failure of the server", 10_999, 500, "topic"],
    ["an unknown complaint about the message", 10_998, 400, "event"],
  ] as const) {
    test(`A8 C5 ${what} is a failure of scope ${scope} and tried again`, () => {
      const outcome = refused(errorCode, code);
      assert.ok(outcome.kind === "retry" && outcome.scope === scope, JSON.stringify(outcome));
      assert.match(outcome.reason, /order\.placed.*it says why.*ORDERS/);
    });
  }

  test("C5 a message that the stream finds too large is rejected for good", () => {
    assert.equal(refused(10_054, 400).kind, "rejected");
  });

  test("C5 a wrong stream is named together with the one that was wanted", () => {
    const outcome = answered(
      '{"error":{"code":400,"err_code":10060,"description":"no match"},"stream":"OTHER","seq":0}',
    );
    assert.ok(outcome.kind === "retry");
    assert.match(outcome.reason, /"OTHER".*expected "ORDERS"/);
  });

  for (const text of ["", "ok", "null", "7", "[]", '{"success":true}', '{"seq":1}']) {
    test(`D4 ${JSON.stringify(text)} is no acknowledgement`, () => {
      const outcome = answered(text);
      assert.ok(outcome.kind === "retry" && outcome.scope === "topic");
    });
  }

  test("C5 a subject without a stream, or that is denied, is the subject's failure", () => {
    for (const kind of ["no responders", "denied"] as const) {
      const outcome = outcomeOf("order.placed", { kind }, settings);
      assert.ok(outcome.kind === "retry" && outcome.scope === "topic");
      assert.match(outcome.reason, /order\.placed/);
    }
  });
});

describe("a connection to NATS that does not come about", () => {
  for (const [error, expected] of [
    [Object.assign(new Error("connect"), { code: "ECONNREFUSED" }), /refused/],
    [Object.assign(new Error("lookup"), { code: "ENOTFOUND" }), /host name is unknown/],
    [new Error("'Authorization Violation'"), /check user, password, token/],
    [Object.assign(new Error("self-signed"), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" }), /tls\.ca/],
    [new Error("server does not support 'tls'"), /remove tls/],
    [undefined, /closed the connection/],
    [
      Object.assign(new Error("write after end"), { code: "ERR_STREAM_WRITE_AFTER_END" }),
      /: the server closed the connection, or was killed \(ERR_STREAM_WRITE_AFTER_END\)$/,
    ],
    [Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }), /closed the connection, or was killed/],
    ["a text", /a text/],
    [new Error("outer", { cause: Object.assign(new Error("inner"), { code: "ECONNREFUSED" }) }), /refused/],
  ] as const) {
    test(`A4 ${String(error)} is the destination's failure, with its reason`, () => {
      const outcome = unreachable(connectionReason(settings, error), error);
      assert.ok(outcome.kind === "retry" && outcome.scope === "destination");
      assert.match(outcome.reason, expected);
      assert.match(outcome.reason, /^NATS at a:4222: /);
    });
  }

  test("A20 a reason shows no password", () => {
    const error = new Error("hunter2 was refused");
    const outcome = unreachable(connectionReason(settings, error), error);
    assert.ok(outcome.kind === "retry");
    assert.doesNotMatch(outcome.reason, /hunter2/);
  });
});
