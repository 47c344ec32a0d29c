import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readTopic } from "../../../test/servers/kafka-reader.ts";
import { type SecureKafka, startSecureKafka, unsignedToken } from "../../../test/servers/kafka-secure.ts";
import { until } from "../../../test/servers/until.ts";
import type { Publisher } from "../../ports/publisher.ts";
import type { KafkaPublisherOptions, KafkaSasl, KafkaTls } from "./kafka-config.ts";
import { deliver, kinds, message, publish, shown } from "./kafka-fixture.test.ts";
import { kafkaPublisher } from "./kafka-publisher.ts";

const CANARY = "canary-7f3a";

let kafka: SecureKafka;
const opened: Publisher[] = [];

before(async () => {
  // Connections have to prove themselves again every second, as with tokens that expire.
  kafka = await startSecureKafka({ properties: { "connections.max.reauth.ms": 1_000 } });
  await kafka.createTopic("orders");
  const rights = [{ operations: ["WRITE", "DESCRIBE"], on: "TOPIC", name: "orders" }] as const;
  await Promise.all(["User:relay", "User:CN=relay"].map((principal) => kafka.allow(principal, rights)));
});

after(async () => {
  await Promise.all(opened.map((it) => it.close()));
  await kafka[Symbol.asyncDispose]();
});

function open(options: Omit<KafkaPublisherOptions, "brokers"> & { brokers?: string }): Publisher {
  const { brokers = kafka.saslBrokers, ...rest } = options;
  const made = kafkaPublisher({ brokers: [brokers], delivery: "at-least-once", createTopics: false, ...rest });
  opened.push(made);
  return made;
}

function trusting(): KafkaTls {
  return { ca: kafka.certificates.authority.certificate };
}

async function count(): Promise<number> {
  return (await readTopic(kafka.directBrokers, "orders")).length;
}

async function reasonOf(publisher: Publisher): Promise<string> {
  const [reason] = shown(await publish(publisher, [message("a1")]));
  assert.ok(reason !== undefined && !reason.includes("\n"), reason);
  return reason;
}

const credentials: readonly (readonly [mechanism: string, sasl: () => KafkaSasl])[] = [
  ...(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] as const).map(
    (mechanism) => [mechanism, () => ({ mechanism, username: "relay", password: "relay-secret" })] as const,
  ),
  ["OAUTHBEARER with a token", () => ({ mechanism: "OAUTHBEARER", token: unsignedToken("relay") })],
  ["OAUTHBEARER with a function", () => ({ mechanism: "OAUTHBEARER", token: async () => unsignedToken("relay") })],
];

for (const [mechanism, sasl] of credentials) {
  test(`A20 delivers over TLS and ${mechanism}`, async () => {
    const before = await count();
    await deliver(open({ tls: trusting(), sasl: sasl() }), [message("a1"), message("a2")]);
    assert.equal(await count(), before + 2);
  });
}

test("A20 a connection that must re-authenticate gets a new token and continues", async () => {
  let [asked, sent] = [0, 0];
  const token = async () => {
    asked += 1;
    return unsignedToken("relay");
  };
  const publisher = open({ tls: trusting(), sasl: { mechanism: "OAUTHBEARER", token } });
  const before = await count();
  await until("the token is asked for again and again", async () => {
    await deliver(publisher, [message("a1")]);
    sent += 1;
    return asked >= 5;
  });
  assert.equal(await count(), before + sent);
});

test("A20 delivers over mutual TLS", async () => {
  const before = await count();
  const { certificate: cert, key } = kafka.certificates.client;
  await deliver(open({ brokers: kafka.mutualTlsBrokers, tls: { ...trusting(), cert, key } }), [message("a1")]);
  assert.equal(await count(), before + 1);
});

test("A20 wrong credentials are the destination's fault, name the setting and show no secret", async () => {
  const password = CANARY;
  const wrong: readonly KafkaSasl[] = [
    { mechanism: "PLAIN", username: "relay", password },
    { mechanism: "SCRAM-SHA-256", username: "relay", password },
    { mechanism: "SCRAM-SHA-512", username: "nobody", password },
    { mechanism: "OAUTHBEARER", token: `${CANARY}.${CANARY}.` },
    { mechanism: "OAUTHBEARER", token: unsignedToken("relay", -60) },
    { mechanism: "OAUTHBEARER", token: () => Promise.reject(new Error("the token server is away")) },
  ];
  const publishers = wrong.map((sasl) => open({ tls: trusting(), sasl }));
  const reasons = await Promise.all(publishers.map(reasonOf));
  const found = await Promise.all(publishers.map((it) => it.examine?.(AbortSignal.timeout(30_000))));
  assert.deepEqual(
    found.map((it) => `retry destination: ${it?.[0]?.reason}`),
    reasons,
    "an examination says the same",
  );
  for (const reason of reasons) {
    assert.match(reason, /^retry destination: Kafka at 127\.0\.0\.1:\d+: .*sasl/);
    assert.doesNotMatch(reason, new RegExp(CANARY));
  }
  assert.match(reasons.at(-1)!, /sasl\.token returned no token: the token server is away/);
});

test("A20 a wrong kind of connection is reported with the setting that is missing or wrong", async () => {
  const sasl: KafkaSasl = { mechanism: "PLAIN", username: "relay", password: CANARY };
  const { certificate: cert, key } = kafka.certificates.stranger;
  const timeouts = { connectTimeoutMs: 1_500, requestTimeoutMs: 1_500 };
  const wrong: readonly (readonly [Parameters<typeof open>[0], RegExp])[] = [
    [{ sasl }, /tls/],
    [{ tls: true, sasl }, /check tls\.ca/],
    [{ tls: { ...trusting(), servername: "elsewhere" }, sasl }, /check tls\.servername/],
    [{ tls: trusting() }, /sasl/],
    [{ brokers: kafka.directBrokers, sasl }, /sasl/],
    [{ brokers: kafka.directBrokers, tls: trusting() }, /tls/],
    [{ brokers: kafka.mutualTlsBrokers, tls: trusting() }, /tls\.cert/],
    [{ brokers: kafka.mutualTlsBrokers, tls: { ...trusting(), cert, key } }, /tls\.cert/],
  ];
  await Promise.all(
    wrong.map(async ([options, expected]) => {
      const reason = await reasonOf(open({ ...options, ...timeouts }));
      assert.match(reason, /^retry destination: Kafka at /);
      assert.match(reason, expected);
      assert.doesNotMatch(reason, new RegExp(CANARY));
    }),
  );
});

test("A20 a missing right on a topic fails that topic only, and ends when it is granted", async () => {
  const publisher = open({
    tls: trusting(),
    sasl: { mechanism: "PLAIN", username: "relay", password: "relay-secret" },
  });
  await kafka.createTopic("private");
  const batch = [message("a1"), message("a2", { topic: "private" }), message("a3"), message("b1")];
  const outcomes = await publish(publisher, batch);
  assert.deepEqual(kinds(outcomes), ["delivered", "retry topic", "skipped", "delivered"]);
  assert.match(shown(outcomes)[1]!, /topic "private": TOPIC_AUTHORIZATION_FAILED \(29\): .*grant Write/);
  const rights = [{ operations: ["WRITE", "DESCRIBE"], on: "TOPIC", name: "private" }] as const;
  await kafka.allow("User:relay", rights);
  await deliver(publisher, [batch[1]!, batch[2]!]);
  await kafka.revoke("User:relay", rights);
  assert.deepEqual(kinds(await publish(publisher, [batch[1]!])), ["retry topic"]);
});

test("A20 a topic that the user may read but not write is reported by the broker at the write", async () => {
  const publisher = open({
    tls: trusting(),
    sasl: { mechanism: "PLAIN", username: "relay", password: "relay-secret" },
  });
  await kafka.createTopic("read-only");
  await kafka.allow("User:relay", [{ operations: ["DESCRIBE"], on: "TOPIC", name: "read-only" }]);
  const outcomes = await publish(publisher, [message("a1", { topic: "read-only" }), message("b1")]);
  assert.deepEqual(kinds(outcomes), ["retry topic", "delivered"]);
});
