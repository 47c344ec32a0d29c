import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import type { EventHeaders, Message } from "../../core/event.ts";
import { secretKey, signatureHeaders } from "../../core/webhook-signature.ts";
import { requestHeaders } from "./http-headers.ts";

function message(headers: EventHeaders, changes: Partial<Message> = {}): Message {
  const payload = Buffer.from("{}");
  const event = { id: "id-1", type: "t", key: "k", payload, headers, correlationId: null, createdAt: null };
  return { event, topic: "t", key: "k", headers, payload, ...changes };
}

function sent(headers: EventHeaders, configured: EventHeaders = {}, changes: Partial<Message> = {}) {
  const result = requestHeaders(message(headers, changes), new Map(Object.entries(configured)));
  if (typeof result === "string") return result;
  const pairs = Array.from({ length: result.flat.length / 2 }, (_, at) => result.flat.slice(at * 2, at * 2 + 2));
  assert.equal(new Set(pairs.map(([name]) => name)).size, pairs.length, "each name once");
  return Object.fromEntries(pairs) as Record<string, string>;
}

const decoded = (value: string) => decodeURIComponent(value);

test("B6 D8 id, type, key, topic and headers have their places", () => {
  const plain = { "idempotency-key": "id-1", "event-type": "t", "partition-key": "k" };
  const own = { "content-type": "application/json", "user-agent": "outbox-relay" };
  assert.deepEqual(sent({ "X-Tenant": "a b" }), { ...plain, ...own, "x-tenant": "a b" });
  assert.partialDeepStrictEqual(sent({}, {}, { topic: "other" }), { "event-topic": "other" });
  assert.equal(Object.hasOwn(sent({}, {}, { key: null }) as object, "partition-key"), false);
  assert.partialDeepStrictEqual(sent({}, {}, { key: "" }), { "partition-key": "" });
});

test("A20 an event overrides neither the frame of the request nor what was configured", () => {
  const own = { Host: "evil", "content-length": "1", "transfer-encoding": "chunked", connection: "close" };
  const result = sent({ ...own, authorization: "mine", "webhook-id": "x" }, { authorization: "Bearer y" });
  assert.partialDeepStrictEqual(result, {
    authorization: "Bearer y",
    "event-header-authorization": "mine",
    "event-header-host": "evil",
    "event-header-content-length": "1",
    "event-header-transfer-encoding": "chunked",
    "event-header-connection": "close",
    "event-header-webhook-id": "x",
  });
  for (const name of ["host", "content-length", "transfer-encoding", "connection"]) {
    assert.equal(Object.hasOwn(result as object, name), false, name);
  }
  assert.partialDeepStrictEqual(sent({ "content-type": "text/plain" }, { "content-type": "a/b" }), {
    "content-type": "text/plain",
  });
});

test("what HTTP cannot say is refused with the reason", () => {
  assert.match(String(sent({ "": "x" })), /without a name/);
  assert.match(String(sent({ Tenant: "a", tenant: "b" })), /two headers have the name tenant/);
  assert.match(String(sent({ note: "\ud800" })), /half a character/);
  assert.match(String(sent({}, {}, { key: "\ud800" })), /half a character/);
});

test("B6 any header, key and id arrives in a form that is legal and can be undone", () => {
  const texts = fc.string({ unit: "binary" });
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", minLength: 1 }), texts, texts, (name, value, key) => {
      const result = sent({ [`x-${name}`]: value }, {}, { key }) as Record<string, string>;
      const encoded = (result["percent-encoded-headers"] ?? "").split(", ");
      const back = (header: string) => (encoded.includes(header) ? decoded(result[header]!) : result[header]);
      for (const [header, text] of Object.entries(result)) {
        assert.match(header, /^[!#$%&'*+.^_`|~0-9a-z-]+$/);
        assert.match(text, /^(?:[!-~](?:[ -~]*[!-~])?)?$/);
      }
      const own = Object.keys(result).find((header) => decoded(header) === `x-${name}`.toLowerCase());
      assert.equal(back(own ?? assert.fail(`x-${name} is missing`)), value);
      assert.equal(back("partition-key"), key);
    }),
  );
});

test("attributes of CloudEvents are encoded as their binding says", () => {
  const result = sent({ "ce-subject": 'Euro € "50%" x' }) as Record<string, string>;
  assert.equal(result["ce-subject"], "Euro%20%E2%82%AC%20%2250%25%22%20x");
  assert.equal(result["percent-encoded-headers"], undefined);
});

test("D8 the signature is that of Standard Webhooks, one for each secret", () => {
  const keys = [Buffer.alloc(24, 1), Buffer.alloc(64, 2)];
  const read = keys.map((key) => secretKey(`whsec_${key.toString("base64")}`));
  assert.deepEqual(read, keys);
  const headers = Object.fromEntries(signatureHeaders(keys, "msg_1", 1_700_000_000, Buffer.from('{"a":1}')));
  const expected = keys.map((key) => {
    return `v1,${createHmac("sha256", key).update('msg_1.1700000000.{"a":1}').digest("base64")}`;
  });
  assert.deepEqual(headers, {
    "webhook-id": "msg_1",
    "webhook-timestamp": "1700000000",
    "webhook-signature": expected.join(" "),
  });
  for (const bad of [
    "",
    "secret",
    "whsec_",
    "whsec_AAAA",
    "whsec_???",
    `whsec_${Buffer.alloc(65).toString("base64")}`,
  ]) {
    assert.match(String(secretKey(bad)), /write whsec_/, bad);
  }
});
