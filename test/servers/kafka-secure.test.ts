import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { SASLOptions } from "@platformatic/kafka";
import { withAdmin } from "./kafka-admin.ts";
import { readTopic } from "./kafka-reader.ts";
import { type SecureKafka, startSecureKafka, unsignedToken } from "./kafka-secure.ts";
import { writeTopic } from "./kafka-writer.ts";

describe("Kafka with TLS, SASL and rights", () => {
  let kafka: SecureKafka;
  let overTls: Record<string, string>;
  before(async () => {
    kafka = await startSecureKafka();
    await kafka.createTopic("t");
    for (const principal of ["User:relay", "User:CN=relay"]) {
      await kafka.allow(principal, [{ operations: ["WRITE", "DESCRIBE"], on: "TOPIC", name: "t" }]);
    }
    overTls = { "security.protocol": "sasl_ssl", "ssl.ca.location": kafka.certificates.authority.certificateFile };
  });
  after(() => kafka[Symbol.asyncDispose]());

  // Not through kcat: Debian's does not compute SCRAM as Kafka 4 wants it.
  const signIn = (sasl: SASLOptions) =>
    withAdmin(kafka.saslBrokers, (admin) => admin.listTopics(), {
      retries: 2,
      tls: { ca: kafka.certificates.authority.certificate },
      sasl,
    });

  for (const mechanism of ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] as const) {
    test(`${mechanism} lets in by the right password only`, async () => {
      assert.deepEqual(await signIn({ mechanism, username: "relay", password: "relay-secret" }), ["t"]);
      await assert.rejects(signIn({ mechanism, username: "relay", password: "guess" }), isRefused);
    });
  }

  test("OAUTHBEARER lets in by a token that has not expired", async () => {
    assert.deepEqual(await signIn({ mechanism: "OAUTHBEARER", token: unsignedToken("relay") }), ["t"]);
    const expired = unsignedToken("relay", -3_600);
    // The client overlooks the broker's no and is turned away with its next request.
    await assert.rejects(signIn({ mechanism: "OAUTHBEARER", token: expired }), /SASL state/);
  });

  test("mutual TLS lets in by a certificate of the authority only", async () => {
    const { authority, client, stranger } = kafka.certificates;
    const settings = (identity: typeof client) => ({
      "security.protocol": "ssl",
      "ssl.ca.location": authority.certificateFile,
      "ssl.certificate.location": identity.certificateFile,
      "ssl.key.location": identity.keyFile,
    });
    await writeTopic(kafka.mutualTlsBrokers, "t", ["trusted"], settings(client));
    assert.equal(String((await readTopic(kafka.directBrokers, "t"))[0]?.value), "trusted");
    await assert.rejects(writeTopic(kafka.mutualTlsBrokers, "t", ["x"], { ...settings(stranger), ...impatient }));
  });

  test("a right is in force from the moment it is given until it is taken", async () => {
    await kafka.createTopic("other");
    const login = { ...overTls, "sasl.mechanism": "PLAIN", "sasl.username": "relay", "sasl.password": "relay-secret" };
    const write = () => writeTopic(kafka.saslBrokers, "other", ["x"], { ...login, ...impatient });
    await assert.rejects(write(), /authorization/i);
    const right = [{ operations: ["WRITE"], on: "TOPIC", name: "oth", prefixed: true }] as const;
    await kafka.allow("User:relay", right);
    await write();
    await kafka.revoke("User:relay", right);
    await assert.rejects(write(), /authorization/i);
    assert.equal((await readTopic(kafka.directBrokers, "other")).length, 1);
  });

  const impatient = { "message.timeout.ms": "1000" };
});

function isRefused(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && cause.code === "PLT_KFK_AUTHENTICATION") return true;
    if (cause instanceof AggregateError) return cause.errors.some(isRefused);
  }
  return false;
}
