import assert from "node:assert/strict";
import { test } from "node:test";
import { MultipleErrors, NetworkError, ProtocolError, protocolErrors, ResponseError } from "@platformatic/kafka";
import { kafkaSettings } from "./kafka-config.ts";
import { describeCode, meaningOf, nameOf } from "./kafka-error-codes.ts";
import { answersIn, connectionReason, isAnswered, outcomeOf, responseIn } from "./kafka-errors.ts";

const settings = kafkaSettings({
  brokers: ["b1:9092", "b2:9092"],
  tls: { passphrase: "canary-passphrase" },
  sasl: { mechanism: "PLAIN", username: "relay", password: "canary-password" },
});

test("every error code of the protocol that the client knows is sorted, under its own name", () => {
  for (const { code, id } of Object.values(protocolErrors)) {
    if (code !== 0) assert.equal(nameOf(code), id, `code ${code}`);
  }
  assert.equal(nameOf(0), null);
});

test("an unknown code of a newer broker blames no event and proves nothing", () => {
  assert.deepEqual(meaningOf(999), { scope: "destination", isFinal: false, isDefinite: false, isPassing: false });
  assert.match(describeCode(999), /\(999\)/);
});

test("C5 only what no retry can cure is final, and it is always the event's own", () => {
  const final = Object.values(protocolErrors).filter(({ code }) => meaningOf(code).isFinal);
  assert.deepEqual(final.map(({ id }) => id).sort(), [
    "INVALID_RECORD",
    "INVALID_TOPIC_EXCEPTION",
    "MESSAGE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE",
  ]);
  for (const { code } of final) assert.deepEqual([meaningOf(code).scope, meaningOf(code).isDefinite], ["event", true]);
});

test("what the leader may have written before it lost its place is not definite", () => {
  const ids = [
    "NOT_LEADER_OR_FOLLOWER",
    "REQUEST_TIMED_OUT",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "KAFKA_STORAGE_ERROR",
  ];
  for (const id of ids) assert.equal(meaningOf(codeOf(id)).isDefinite, false, id);
});

test("a fenced producer is the same under both of its codes", () => {
  assert.deepEqual(meaningOf(codeOf("PRODUCER_FENCED")), meaningOf(codeOf("INVALID_PRODUCER_EPOCH")));
});

test("an outcome names the topic, the code and what to do, in one line", () => {
  const outcome = outcomeOf(codeOf("TOPIC_AUTHORIZATION_FAILED"), "orders", "first\nsecond");
  assert.ok(outcome.kind === "retry" && outcome.scope === "topic");
  assert.match(outcome.reason, /^topic "orders": TOPIC_AUTHORIZATION_FAILED \(29\): .*grant Write.*\(first second\)$/);
  assert.equal(outcomeOf(codeOf("MESSAGE_TOO_LARGE"), "orders").kind, "rejected");
});

test("a broker's answer is distinguished from no answer, however deep it is in the client's error", () => {
  const answer = new ResponseError(0, 11, { "/responses/0": [3, "gone"] }, { throttleTimeMs: 7 });
  const deep = new MultipleErrors("produce failed 2 times.", [new NetworkError("Connection closed"), answer]);
  assert.deepEqual(answersIn(deep), [{ code: 3, path: "/responses/0", message: "gone" }]);
  assert.equal(isAnswered(deep), true);
  assert.deepEqual(responseIn(deep), { throttleTimeMs: 7 });
  assert.equal(isAnswered(new MultipleErrors("x", [new NetworkError("Connection closed")])), false);
  assert.equal(isAnswered("no error at all"), false);
});

test("A20 a reason names the setting to check", () => {
  const system = (code: string) => new NetworkError("x", { cause: Object.assign(new Error("no"), { code }) });
  const reasons: readonly (readonly [unknown, RegExp])[] = [
    [system("ECONNREFUSED"), /^Kafka at b1:9092,b2:9092: connection refused .*check brokers$/],
    [system("ENOTFOUND"), /host name is unknown.*check brokers$/],
    [system("SELF_SIGNED_CERT_IN_CHAIN"), /check tls\.ca$/],
    [
      system("ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED"),
      /refuses the client certificate.*check tls\.cert and tls\.key$/,
    ],
    [new ProtocolError("SASL_AUTHENTICATION_FAILED"), /refused the credentials in sasl/],
    [new NetworkError("Connection closed"), /closed the connection.*may require tls\.cert, which is not set$/],
    [new Error("something else"), /something else$/],
  ];
  for (const [error, expected] of reasons) assert.match(connectionReason(settings, error), expected);
});

test("A20 no reason shows a secret, wherever it comes from", () => {
  const leaky = new Error("login relay canary-password failed\nwith canary-passphrase");
  const reason = connectionReason(settings, new NetworkError("Connection failed", { cause: leaky }));
  assert.doesNotMatch(connectionReason(settings, leaky) + reason, /canary/);
  assert.doesNotMatch(connectionReason(settings, leaky), /\n/);
});

function codeOf(id: string): number {
  return protocolErrors[id as keyof typeof protocolErrors]?.code ?? assert.fail(id);
}
