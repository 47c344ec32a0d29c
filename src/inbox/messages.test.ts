import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { signatureHeaders } from "../core/webhook-signature.ts";
import { fromBullmq } from "./from-bullmq.ts";
import { fromHttp, type HttpVerification } from "./from-http.ts";
import { fromKafka } from "./from-kafka.ts";
import { fromRabbitmq } from "./from-rabbitmq.ts";

const EVENT = { id: "e1", type: "order.placed", key: "order-1", correlationId: "c1" };
const PAYLOAD = Buffer.from('{"total":30}');
const HEADERS = { "event-id": "e1", "correlation-id": "c1", tenant: "acme" };

function partsOf(message: ReturnType<typeof fromKafka>) {
  const { correlationId, id, key, type } = message;
  assert.deepEqual(message.json(), { total: 30 });
  assert.equal(message.headers.tenant, "acme");
  return { id, type, key, correlationId };
}

describe("a message of a broker becomes one for the inbox", () => {
  const bytes = (text: string) => Buffer.from(text);
  const record = { key: bytes("order-1"), value: PAYLOAD };
  const entries = Object.entries(HEADERS);
  for (const [client, given, topic] of [
    [
      "@platformatic/kafka",
      {
        ...record,
        topic: "order.placed",
        headers: new Map(entries.map(([name, value]) => [bytes(name), bytes(value)])),
      },
    ],
    [
      "kafkajs",
      { ...record, headers: Object.fromEntries(entries.map(([name, it]) => [name, bytes(it)])) },
      "order.placed",
    ],
    [
      "node-rdkafka",
      { ...record, topic: "order.placed", headers: entries.map(([name, it]) => ({ [name]: bytes(it) })) },
    ],
  ] as const) {
    test(`F5 of ${client}`, () => {
      assert.deepEqual(partsOf(fromKafka(given, topic)), EVENT);
    });
  }

  test("F5 of a CloudEvent in Kafka, whose topic is not its type, and of one without a key", () => {
    const headers = { "event-id": "e1", ce_type: "order.placed" };
    const { key, payload, type } = fromKafka({ key: null, value: null, topic: "orders", headers });
    assert.deepEqual({ key, payload: payload.length, type }, { key: null, payload: 0, type: "order.placed" });
  });

  test("F5 of RabbitMQ", () => {
    const headers = { ...HEADERS, "partition-key": "order-1" };
    const properties = { messageId: "e1", type: "order.placed", correlationId: "c1", headers };
    const message = { content: PAYLOAD, fields: { routingKey: "orders" }, properties };
    assert.deepEqual(partsOf(fromRabbitmq(message)), EVENT);
    const plain = fromRabbitmq({ ...message, properties: { messageId: "e2" } });
    assert.deepEqual([plain.id, plain.type, plain.key], ["e2", "orders", null]);
  });

  test("F5 of BullMQ, also one whose payload is not text", () => {
    const data = { id: "e1", type: "order.placed", key: "order-1", headers: HEADERS };
    assert.deepEqual(partsOf(fromBullmq({ data: { ...data, payload: String(PAYLOAD), encoding: "utf8" } })), EVENT);
    const binary = fromBullmq({ data: { ...data, payload: "/w==", encoding: "base64" } });
    assert.deepEqual(binary.payload, Buffer.from([255]));
    assert.throws(() => binary.json(), { code: "EVENT_INVALID", message: /event e1 is not JSON/ });
  });

  test("F5 one without an event id is refused, because duplicates could not be detected", () => {
    const isRefused = { code: "EVENT_INVALID", message: /has no event id/ };
    assert.throws(() => fromKafka({ value: PAYLOAD, topic: "orders" }), isRefused);
    assert.throws(() => fromRabbitmq({ content: PAYLOAD, fields: { routingKey: "a" }, properties: {} }), isRefused);
    assert.throws(() => fromBullmq({ data: { foreign: true } } as never), isRefused);
    assert.throws(() => fromHttp({ headers: {}, body: "" }, { signingSecrets: null }), isRefused);
  });
});

describe("a request of the relay", () => {
  const KEYS = [1, 2].map((byte) => Buffer.alloc(32, byte));
  const [SECRET = "", OTHER = ""] = KEYS.map((key) => `whsec_${key.toString("base64")}`);
  const NOW_S = 1_800_000_000;
  const verification = (signingSecrets: readonly string[] | null, nowS = NOW_S): HttpVerification => ({
    signingSecrets,
    nowMs: () => nowS * 1_000,
  });
  const http = { ...HEADERS, "event-type": "order.placed", "partition-key": "order-1" };
  const signed = (key: Buffer, body = PAYLOAD) => ({
    ...http,
    ...Object.fromEntries(signatureHeaders([key], "e1", NOW_S, body)),
  });

  test("F5 H4 passes with the signature of any secret, from any kind of headers", () => {
    const [key, other] = KEYS as [Buffer, Buffer];
    assert.deepEqual(partsOf(fromHttp({ headers: signed(key), body: PAYLOAD }, verification([SECRET]))), EVENT);
    const headers = new Headers(signed(other));
    assert.deepEqual(partsOf(fromHttp({ headers, body: String(PAYLOAD) }, verification([SECRET, OTHER]))), EVENT);
    const upper = Object.fromEntries(Object.entries(signed(key)).map(([name, it]) => [name.toUpperCase(), [it]]));
    assert.deepEqual(partsOf(fromHttp({ headers: upper, body: PAYLOAD }, verification([SECRET]))), EVENT);
  });

  test("F5 H4 is refused with another body, another id, another secret, too late, or without a signature", () => {
    const headers = signed(KEYS[0]!);
    const isRefused = { code: "SIGNATURE_INVALID" };
    const take = (changes: object, body = PAYLOAD, how = verification([SECRET])) =>
      fromHttp({ headers: { ...headers, ...changes }, body }, how);
    assert.throws(() => take({}, Buffer.from("{}")), isRefused);
    assert.throws(() => take({ "webhook-id": "e2" }), isRefused);
    assert.throws(() => take({}, PAYLOAD, verification([OTHER])), isRefused);
    assert.throws(() => take({}, PAYLOAD, verification([SECRET], NOW_S + 301)), {
      message: /it is 301 s old/,
      ...isRefused,
    });
    assert.throws(() => take({}, PAYLOAD, verification([SECRET], NOW_S - 301)), {
      message: /in the future/,
      ...isRefused,
    });
    assert.throws(() => take({ "webhook-signature": "v1,AAAA v2,BBBB" }), isRefused);
    assert.throws(() => take({ "webhook-timestamp": "soon" }), isRefused);
    assert.throws(() => fromHttp({ headers: http, body: PAYLOAD }, verification([SECRET])), isRefused);
  });

  test("F5 H4 has the id that was signed, so that a copy under another one stays a copy", () => {
    const headers = { ...signed(KEYS[0]!), "event-id": "e2", "idempotency-key": "e2" };
    assert.equal(fromHttp({ headers, body: PAYLOAD }, verification([SECRET])).id, "e1");
  });

  test("F5 values that HTTP cannot carry come back as they were", () => {
    const headers = {
      ...http,
      "percent-encoded-headers": "tenant",
      tenant: "M%C3%BCller",
      "ce-source": "%2Fshop",
      plain: "100%25",
    };
    const message = fromHttp({ headers, body: PAYLOAD }, verification(null));
    assert.deepEqual(
      [message.headers.tenant, message.headers["ce-source"], message.headers.plain],
      ["Müller", "/shop", "100%25"],
    );
  });

  test("F5 secrets that are none are an error of the configuration, not of the request", () => {
    for (const secrets of [[], ["hunter2"]]) {
      assert.throws(() => fromHttp({ headers: http, body: PAYLOAD }, verification(secrets)), {
        code: "CONFIG_INVALID",
      });
    }
  });
});
