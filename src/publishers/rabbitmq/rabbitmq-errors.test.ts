import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../core/event.ts";
import { rabbitSettings } from "./rabbitmq-config.ts";
import { connectionReason, outcomeOf, refused, unroutable } from "./rabbitmq-errors.ts";
import { faultOf, propertiesOf } from "./rabbitmq-message.ts";

const settings = rabbitSettings({ hosts: ["a:1", "b:2"], exchange: "events", username: "me", password: "canary" });

function messageOf(changes: Partial<Message> = {}, createdAt: string | null = null): Message {
  const payload = Buffer.from("12345");
  const event = { id: "e1", type: "t", key: "k", payload, headers: {}, correlationId: "c1", createdAt };
  return { event, topic: "t", key: "k", headers: { "event-id": "e1" }, payload, ...changes };
}

function closed(code: number, text: string): Error {
  return Object.assign(new Error(`Channel closed by server: ${code} with message "${text}"`), { code });
}

test("C3 what has no queue waits with its topic, what a queue refuses counts against the event", () => {
  const returned = unroutable(settings, "t", "312 NO_ROUTE");
  assert.deepEqual([returned.kind, "scope" in returned && returned.scope], ["retry", "topic"]);
  const nacked = refused(settings, "t");
  assert.deepEqual([nacked.kind, "scope" in nacked && nacked.scope], ["retry", "event"]);
});

test("C5 a channel that one message closed is held against that one alone", () => {
  const large = closed(406, "PRECONDITION_FAILED - message size 5 is larger than configured max size 4");
  assert.equal(outcomeOf(settings, large, messageOf()).kind, "rejected");
  assert.equal(outcomeOf(settings, large, messageOf({ payload: Buffer.from("1") })).kind, "skipped");
  const denied = closed(403, "ACCESS_REFUSED - access to topic 't' in exchange 'events' in vhost '/' refused");
  const outcome = outcomeOf(settings, denied, messageOf());
  assert.deepEqual([outcome.kind, "scope" in outcome && outcome.scope], ["retry", "topic"]);
  assert.equal(outcomeOf(settings, denied, messageOf({ topic: "u" })).kind, "skipped");
});

test("A20 the reason names hosts and the way out, and no password", () => {
  const cases: readonly (readonly [Error, RegExp])[] = [
    [closed(404, "NOT_FOUND - no exchange"), /exchange "events" does not exist in virtual host "\/".*declare=true/],
    [closed(406, "inequivalent arg 'type'"), /other properties than declared: remove declare=true/],
    [new Error('Handshake terminated by server: 403 (ACCESS-REFUSED) with message "Login was refused"'), /user "me"/],
    [new Error("Expected ConnectionOpenOk; got <ConnectionClose channel:0>"), /virtual host "\/" does not exist/],
    [new Error("Socket closed abruptly during opening handshake"), /amqps:/],
    [new Error("write EPROTO: wrong version number"), /does not use TLS: write amqp:/],
    [new AggregateError([new Error("one"), new Error("connect ECONNREFUSED")], ""), /connect ECONNREFUSED$/],
  ];
  for (const [error, expected] of cases) {
    const reason = connectionReason(settings, error);
    assert.match(reason, /^RabbitMQ at a:1,b:2: /);
    assert.match(reason, expected);
    assert.doesNotMatch(reason, /canary/);
    const outcome = outcomeOf(settings, error, messageOf());
    assert.ok(outcome.kind === "retry" && outcome.scope === "destination");
  }
});

test("B6 C3 a message's properties: id, type, time, correlation id, content type and the key as a header", () => {
  const headers = { "event-id": "e1", "content-type": "text/plain" };
  assert.deepEqual(propertiesOf(messageOf({ headers }, "2026-01-02T03:04:05.678901Z")), {
    messageId: "e1",
    type: "t",
    persistent: true,
    mandatory: true,
    headers: { "event-id": "e1", "partition-key": "k" },
    contentType: "text/plain",
    correlationId: "c1",
    timestamp: 1_767_323_045,
  });
});

test("what the protocol cannot carry is rejected before it is sent", () => {
  const fault = (changes: Partial<Message>) => faultOf(messageOf(changes), 131_072);
  assert.equal(fault({}), null);
  assert.equal(fault({ topic: "ä".repeat(127) }), null);
  assert.match(fault({ topic: "ä".repeat(128) }) ?? "", /routing key has 256 bytes, 255 are allowed/);
  assert.match(fault({ key: "\ud800" }) ?? "", /key contains half a character/);
  assert.match(fault({ headers: { BCC: "x" } }) ?? "", /BCC/);
  assert.match(fault({ headers: { ["n".repeat(256)]: "x" } }) ?? "", /256 bytes/);
  assert.match(fault({ headers: { a: "\udfff" } }) ?? "", /header "a" contains half a character/);
  assert.match(fault({ headers: { a: "x".repeat(70_000) } }) ?? "", /65536 fit/);
  assert.match(faultOf(messageOf({ headers: { a: "x".repeat(5_000) } }), 4_096) ?? "", /4096 fit/);
});

test("options that cannot work are refused by name", () => {
  const base = { hosts: ["h:1"], exchange: "e" };
  const cases = [
    [{ ...base, hosts: [] }, /hosts is empty/],
    [{ ...base, hosts: ["h"] }, /"h" is not of the form/],
    [{ ...base, exchange: "" }, /exchange is missing/],
    [{ ...base, exchange: "x".repeat(256) }, /exchange has 256 bytes/],
    [{ ...base, queue: "q" }, /queue requires declare/],
    [{ ...base, vhost: "" }, /vhost has 0 bytes/],
    [{ ...base, heartbeatSeconds: 0 }, /heartbeatSeconds is 0/],
    [{ ...base, connectTimeoutMs: 0.5 }, /connectTimeoutMs is 0.5/],
    [{ ...base, tls: { cert: "c" } }, /tls.cert and tls.key/],
  ] as const;
  for (const [options, expected] of cases) assert.throws(() => rabbitSettings(options), expected);
});
