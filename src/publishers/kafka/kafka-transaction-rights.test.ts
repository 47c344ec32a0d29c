import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { withAdmin } from "../../../test/servers/kafka-admin.ts";
import { type Right, type SecureKafka, startSecureKafka } from "../../../test/servers/kafka-secure.ts";
import { kinds, message, shown } from "./kafka-fixture.test.ts";
import { missingRights } from "./transaction-rights.ts";
import { commit, ledger, openService, send, unaborted } from "./transactions-fixture.test.ts";

const USER = "User:relay";
let kafka: SecureKafka;

before(async () => {
  kafka = await startSecureKafka();
});

after(() => kafka[Symbol.asyncDispose]());

function openAs(service: string) {
  const broker = {
    brokers: kafka.saslBrokers,
    directBrokers: kafka.directBrokers,
    createTopic: kafka.createTopic.bind(kafka),
  };
  return openService(broker, {
    service,
    tls: { ca: kafka.certificates.authority.certificate },
    sasl: { mechanism: "SCRAM-SHA-512", username: "relay", password: "relay-secret" },
  });
}

function onIds(service: string, ...operations: Right["operations"]): Right {
  return { operations, on: "TRANSACTIONAL_ID", name: `${service}.`, prefixed: true };
}

function onTopic(name: string, ...operations: Right["operations"]): Right {
  return { operations, on: "TOPIC", name };
}

test("A2 each right that transactions need is asked for by its name, one after another, until they work", async () => {
  await using service = await openAs("shop");
  const { topic } = service.settings.ledger;
  const refused = (message: RegExp) =>
    assert.rejects(service.transactions.prepare(2), { code: "TRANSACTIONS_REFUSED", message });

  await refused(/Describe and Write on TransactionalId "shop\." \(as a prefix\): `kafka-acls\.sh .*--operation Write/);
  await kafka.allow(USER, [onIds("shop", "DESCRIBE")]);
  await refused(/TransactionalId "shop\."/);
  await kafka.allow(USER, [onIds("shop", "WRITE")]);
  await refused(/Describe on Topic "outbox-relay\.ledger\.shop"/);
  await kafka.allow(USER, [onTopic(topic, "DESCRIBE")]);
  await refused(
    /Create on Topic "outbox-relay\.ledger\.shop": .*--operation Create --topic outbox-relay\.ledger\.shop/,
  );
  await kafka.allow(USER, [onTopic(topic, "CREATE")]);
  await refused(/Read and Write and DescribeConfigs on Topic "outbox-relay\.ledger\.shop"/);
  await kafka.allow(USER, [onTopic(topic, "READ", "WRITE")]);
  await refused(/ DescribeConfigs on Topic/);
  await kafka.allow(USER, [onTopic(topic, "DESCRIBE_CONFIGS")]);
  await service.transactions.prepare(2);
  await assert.rejects(service.transactions.prepare(5), {
    code: "TRANSACTIONS_REFUSED",
    message: /Alter on Topic "outbox-relay\.ledger\.shop"/,
  });

  // Without any right on the cluster.
  await kafka.allow(USER, [onTopic(service.topic, "DESCRIBE", "WRITE")]);
  const lane = await service.fence();
  await commit(lane, 1n, service.messages("a1 b1"));
  assert.deepEqual(await ledger(lane), [1n]);
  await service.assertVisible("a1", "b1");
});

test("A17 A2 an examination names the rights that it can see to be missing, and writes nothing", async () => {
  await using service = await openAs("clinic");
  const { transactions, settings } = service;
  const { topic } = settings.ledger;
  const refused = (message: RegExp, slots = 2) =>
    assert.rejects(async () => await transactions.examine?.(slots), { code: "TRANSACTIONS_REFUSED", message });
  const topics = () => withAdmin(kafka.directBrokers, (admin) => admin.listTopics({ includeInternals: true }));
  const before = await topics();

  await refused(/Describe and Write on TransactionalId "clinic\." \(as a prefix\): `kafka-acls\.sh/);
  await kafka.allow(USER, [onIds("clinic", "DESCRIBE")]);
  await refused(/TransactionalId "clinic\."/);
  await kafka.allow(USER, [onIds("clinic", "WRITE")]);
  await refused(/Describe on Topic "outbox-relay\.ledger\.clinic"/);
  await kafka.allow(USER, [onTopic(topic, "DESCRIBE")]);
  await refused(/Create on Topic "outbox-relay\.ledger\.clinic"/);
  await kafka.allow(USER, [onTopic(topic, "CREATE")]);
  assert.match((await transactions.examine?.(2))?.join() ?? "", /"outbox-relay\.ledger\.clinic" does not exist yet$/);
  assert.deepEqual(await topics(), before);

  await kafka.createTopic(topic, { partitions: 2, config: { "cleanup.policy": "delete" } });
  await refused(/Read and Write and DescribeConfigs on Topic "outbox-relay\.ledger\.clinic"/);
  await kafka.allow(USER, [onTopic(topic, "READ", "WRITE", "DESCRIBE_CONFIGS")]);
  await refused(/Alter on Topic/, 5);
  await kafka.allow(USER, [onTopic(topic, "ALTER")]);
  await assert.rejects(async () => await transactions.examine?.(5), { code: "LEDGER_UNFIT" });
  await kafka.deleteTopic(topic);
  await kafka.createTopic(topic, { partitions: 2, config: { "cleanup.policy": "compact" } });
  assert.match((await transactions.examine?.(5))?.join() ?? "", /has 2 partitions, but 5 are needed$/);
  assert.deepEqual(await transactions.examine?.(2), []);
});

test("a topic without the right to write costs its own events, and not the lane", async () => {
  await using service = await openAs("office");
  const { topic } = service.settings.ledger;
  const closed = `${service.topic}.closed`;
  await kafka.createTopic(closed);
  await kafka.allow(USER, [
    onIds("office", "DESCRIBE", "WRITE"),
    onTopic(topic, "CREATE", "DESCRIBE", "READ", "WRITE", "DESCRIBE_CONFIGS"),
    onTopic(service.topic, "DESCRIBE", "WRITE"),
  ]);
  await service.transactions.prepare(1);
  const lane = await service.fence();
  const batch = [message("a1", { topic: service.topic }), message("b1", { topic: closed })];
  for (const right of ["nothing", "to see it"]) {
    const outcomes = await send(lane, 1n, batch);
    assert.deepEqual(kinds(outcomes), ["skipped", "retry topic"], right);
    assert.match(shown(outcomes)[1]!, /TOPIC_AUTHORIZATION_FAILED/);
    await lane.abort(unaborted());
    assert.equal(lane.isSpent, false);
    await kafka.allow(USER, [onTopic(closed, "DESCRIBE")]);
  }
  await commit(lane, 1n, batch.slice(0, 1));
  await service.assertVisible("a1");
});

test("A2 a right that is taken away later is named when it is missed", async () => {
  await using service = await openAs("store");
  const { topic } = service.settings.ledger;
  await kafka.allow(USER, [
    onIds("store", "DESCRIBE", "WRITE"),
    onTopic(topic, "CREATE", "DESCRIBE", "READ", "WRITE", "DESCRIBE_CONFIGS"),
    onTopic(service.topic, "DESCRIBE", "WRITE"),
  ]);
  await service.transactions.prepare(1);
  const lane = await service.fence();
  await commit(lane, 1n, service.messages("a1"));
  await kafka.revoke(USER, [onTopic(topic, "READ", "WRITE")]);
  const message = /Write on Topic "outbox-relay\.ledger\.store"/;
  await assert.rejects(send(lane, 2n, service.messages("a2")), { code: "TRANSACTIONS_REFUSED", message });
  // A ledger is written to before it is read.
  await assert.rejects(ledger(await service.fence()), { code: "TRANSACTIONS_REFUSED", message });
  await kafka.allow(USER, [onTopic(topic, "WRITE")]);
  await assert.rejects(ledger(await service.fence()), { code: "TRANSACTIONS_REFUSED", message: /Read on Topic/ });
  await kafka.revoke(USER, [onIds("store", "WRITE")]);
  await assert.rejects(service.fence(), { code: "TRANSACTIONS_REFUSED", message: /TransactionalId "store\."/ });
  await service.assertVisible("a1");
});

test("a broker that does not report rights passes the check", () => {
  assert.deepEqual(missingRights(null), []);
});
