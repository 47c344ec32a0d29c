import assert from "node:assert/strict";
import { test } from "node:test";
import { connectionCause } from "./connection-cause.ts";

const SETTINGS = { address: "brokers", trust: "tls.ca", identity: "tls.cert and tls.key" };
const coded = (code: string) => Object.assign(new Error(`it said ${code}`), { code });

test("G2 an error of the network or of TLS says what happened, its code, and the setting to check", () => {
  for (const [code, words] of [
    ["ECONNREFUSED", "connection refused (ECONNREFUSED): nothing listens there, check brokers"],
    ["EAI_AGAIN", "the host name is unknown (EAI_AGAIN): check brokers"],
    ["ENETUNREACH", "no route to the host (ENETUNREACH): check brokers"],
    ["ETIMEDOUT", "no answer in time (ETIMEDOUT): check brokers and the network"],
    ["EPIPE", "the server closed the connection, or was killed (EPIPE)"],
    ["CERT_HAS_EXPIRED", "its certificate has expired (CERT_HAS_EXPIRED)"],
    ["SELF_SIGNED_CERT_IN_CHAIN", "is not signed by a trusted authority (SELF_SIGNED_CERT_IN_CHAIN): check tls.ca"],
    ["CERT_REVOKED", "it said CERT_REVOKED (CERT_REVOKED): check tls.ca"],
    ["ERR_SSL_WRONG_VERSION_NUMBER", "TLS failed (ERR_SSL_WRONG_VERSION_NUMBER): the port may not speak TLS"],
    ["ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_UNKNOWN", "the server refuses the client certificate, or misses one"],
    ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", ": check tls.cert and tls.key"],
  ] as const) {
    assert.ok(connectionCause(coded(code), SETTINGS)?.includes(words), connectionCause(coded(code), SETTINGS) ?? code);
  }
});

test("G2 the cause is found inside other errors, and an error without one has none", () => {
  const inner = new AggregateError([new Error("first"), coded("ECONNREFUSED")], "all addresses failed");
  assert.match(connectionCause(new Error("outer", { cause: inner }), SETTINGS) ?? "", /^connection refused/);
  for (const other of [coded("EVERYTHING"), new Error("plain"), "text", null]) {
    assert.equal(connectionCause(other, SETTINGS), null);
  }
});
