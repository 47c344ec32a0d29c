import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isRelayError } from "../../core/errors.ts";
import { type NatsPublisherOptions, natsSettings, secretsOf, subjectFault } from "./nats-config.ts";

const servers = ["a:4222"];

describe("the options of NATS", () => {
  test("G2 defaults are filled in, and addresses are taken apart", () => {
    const settings = natsSettings({ servers: ["a:4222", "[::1]:4223"] });
    assert.deepEqual(settings.servers, [
      { host: "a", port: 4222 },
      { host: "::1", port: 4223 },
    ]);
    assert.deepEqual([settings.name, settings.stream, settings.tls], ["nats", null, null]);
    assert.deepEqual(settings.login, { kind: "none" });
  });

  for (const [what, options] of [
    ["servers is empty", { servers: [] }],
    ["host:port", { servers: ["nats://a:4222"] }],
    ["host:port", { servers: ["a:70000"] }],
    ["stream", { servers, stream: "A.B" }],
    ["stream", { servers, stream: "" }],
    ["set only one", { servers, user: "u", token: "t" }],
    ["password is set", { servers, password: "p" }],
    ["credentials", { servers, credentials: "nothing" }],
    ["tls.cert and tls.key", { servers, tls: { cert: "c" } }],
    ["connectTimeoutMs", { servers, connectTimeoutMs: 0 }],
  ] satisfies [string, NatsPublisherOptions][]) {
    test(`G2 ${JSON.stringify(options)} is refused by name`, () => {
      assert.throws(
        () => natsSettings(options),
        (error) => isRelayError(error, "CONFIG_INVALID") && error.message.includes(what),
      );
    });
  }

  test("A20 a bad address shows no password", () => {
    assert.throws(
      () => natsSettings({ servers: ["user:hunter2@a:4222"] }),
      (error) => !String(error).includes("hunter2"),
    );
  });

  test("A20 every login's secret is known as one", () => {
    assert.deepEqual(secretsOf(natsSettings({ servers, user: "u", password: "secret-1" })), ["secret-1"]);
    assert.deepEqual(secretsOf(natsSettings({ servers, token: "secret-2" })), ["secret-2"]);
    const credentials = "-----BEGIN NATS USER JWT-----\neyJ0eXAiOiJKV1QiLCJhbGci\n------END NATS USER JWT------\n";
    assert.deepEqual(secretsOf(natsSettings({ servers, credentials })), ["eyJ0eXAiOiJKV1QiLCJhbGci"]);
    assert.deepEqual(secretsOf(natsSettings({ servers })), []);
  });
});

describe("subjects", () => {
  for (const subject of ["order.placed", "OrderPlaced", "käse.größe", "a-b_c/d", "x".repeat(3_900)]) {
    test(`G2 ${subject.slice(0, 20)} is legal`, () => assert.equal(subjectFault(subject), null));
  }
  for (const subject of [
    ...["", "order placed", "order..placed", ".order", "order.", "order.*", "order.>", "a*b", "tab\there"],
    ...["$JS.API.STREAM.DELETE.ORDERS", "nul\0", "half\ud800", "x".repeat(3_901), "ü".repeat(2_000)],
  ]) {
    test(`G2 ${JSON.stringify(subject.slice(0, 30))} is refused`, () => {
      const fault = subjectFault(subject) ?? assert.fail("it was taken for legal");
      assert.match(fault, /^the subject /);
      assert.ok(fault.length < 400);
    });
  }
});
