import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isRelayError } from "../../core/errors.ts";
import { checkClientVersion, loadKafka } from "./kafka-client.ts";
import { describeBrokers, type KafkaPublisherOptions, kafkaSettings, secretsOf, topicFault } from "./kafka-config.ts";

const brokers = ["localhost:9092"];

test("A2 the default is exactly once, with timeouts below the engine's own", () => {
  const settings = kafkaSettings({ brokers: ["a:1", "[::1]:2"] });
  assert.deepEqual(settings.brokers, [
    { host: "a", port: 1 },
    { host: "::1", port: 2 },
  ]);
  assert.equal(describeBrokers(settings.brokers), "a:1,[::1]:2");
  assert.deepEqual([settings.name, settings.service, settings.delivery], ["kafka", "outbox-relay", "exactly-once"]);
  assert.deepEqual(settings.ledger, {
    topic: "outbox-relay.ledger.outbox-relay",
    replicationFactor: -1,
    ringSize: 4_096,
  });
  assert.ok(settings.requestTimeoutMs < 5_000 && settings.connectTimeoutMs < settings.requestTimeoutMs);
});

test("G2 createTopics leaves it to the broker, forces it or forbids it", () => {
  const of = (createTopics?: KafkaPublisherOptions["createTopics"]) => {
    const { autoCreate, creation } = kafkaSettings({
      brokers,
      ...(createTopics === undefined ? {} : { createTopics }),
    });
    return { autoCreate, creation };
  };
  assert.deepEqual(of(), { autoCreate: true, creation: null });
  assert.deepEqual(of(false), { autoCreate: false, creation: null });
  assert.deepEqual(of(true), { autoCreate: false, creation: { partitions: -1, replicationFactor: -1 } });
  assert.deepEqual(of({ partitions: 6, replicationFactor: 3 }).creation, { partitions: 6, replicationFactor: 3 });
});

test("a wrong setting is refused by its name", () => {
  const wrong: readonly (readonly [Partial<KafkaPublisherOptions>, RegExp])[] = [
    [{ brokers: [] }, /brokers is empty/],
    [{ brokers: ["localhost"] }, /brokers: "localhost" is not/],
    [{ brokers: ["http://localhost:9092"] }, /brokers: "http/],
    [{ brokers: ["localhost:70000"] }, /brokers: "localhost:70000"/],
    [{ service: "a b" }, /service "a b"/],
    [{ delivery: "twice" as "exactly-once" }, /delivery "twice"/],
    [{ compression: "rar" as "gzip" }, /compression "rar"/],
    [{ requestTimeoutMs: 0 }, /requestTimeoutMs is 0/],
    [{ ledger: { ringSize: 1.5 } }, /ledger\.ringSize is 1\.5/],
    [{ ledger: { topic: "no spaces" } }, /ledger\.topic: .*contains " "/],
    [{ createTopics: { partitions: 0, replicationFactor: 1 } }, /createTopics\.partitions is 0/],
    [{ tls: { cert: "x" } }, /tls\.cert and tls\.key/],
    [{ sasl: { mechanism: "PLAIN", username: "", password: "x" } }, /sasl\.username is missing/],
    [{ sasl: { mechanism: "PLAIN", username: "x", password: "" } }, /sasl\.password is missing/],
    [{ sasl: { mechanism: "OAUTHBEARER", token: "" } }, /sasl\.token is missing/],
    [{ sasl: { mechanism: "GSSAPI" as "PLAIN", username: "x", password: "y" } }, /sasl\.mechanism "GSSAPI" is none of/],
  ];
  for (const [options, expected] of wrong) {
    assert.throws(
      () => kafkaSettings({ brokers, ...options }),
      (error) => isRelayError(error, "CONFIG_INVALID") && expected.test(error.message),
      String(expected),
    );
  }
});

test("a topic's name is legal by the broker's own rules", () => {
  for (const name of ["a", "A.b_c-9", "x".repeat(249)]) assert.equal(topicFault(name), null, name);
  for (const name of ["", ".", "..", "a b", "ü", "a/b", "a\u0000", "x".repeat(250)]) assert.ok(topicFault(name), name);
});

test("A20 the secrets among the settings are known", () => {
  const token = async () => "t";
  const { sasl: _, ...none } = kafkaSettings({ brokers });
  assert.deepEqual(secretsOf({ ...none, sasl: null }), []);
  assert.deepEqual(secretsOf(kafkaSettings({ brokers, sasl: { mechanism: "OAUTHBEARER", token } })), []);
  assert.deepEqual(secretsOf(kafkaSettings({ brokers, sasl: { mechanism: "OAUTHBEARER", token: "t1" } })), ["t1"]);
});

test("the installed client is of the minor version that is proved to work, and any other is refused", async () => {
  const { clientSoftwareVersion } = await loadKafka();
  const manifest = JSON.parse(readFileSync(join(import.meta.dirname, "../../../package.json"), "utf8"));
  const line = clientSoftwareVersion.replace(/\.\d+$/, "");
  assert.equal(manifest.peerDependencies["@platformatic/kafka"], `~${line}.0`);
  assert.equal(manifest.devDependencies["@platformatic/kafka"], clientSoftwareVersion);
  for (const version of ["1.35.0", "2.13.0"]) {
    assert.throws(
      () => checkClientVersion(version, null),
      (error) =>
        isRelayError(error, "CONFIG_INVALID") && error.message.includes(`npm install @platformatic/kafka@${line}`),
    );
  }
});
