import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { startKafka } from "../servers/kafka.ts";
import { headerText, readTopic } from "../servers/kafka-reader.ts";
import { startSecureKafka } from "../servers/kafka-secure.ts";
import { until } from "../servers/until.ts";
import { BILLING, ORDERS } from "./outbox-tables.ts";
import { runCommand, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "kafka", [ORDERS, BILLING]);

interface Row {
  readonly id: string;
  readonly correlation_id: string;
}

async function insert({ sql }: Stage, table: string, type: string): Promise<Row> {
  const text = `insert into ${table} (aggregate_id, event_type, payload) values ('key-1', $1, '{"a": 1}') returning *`;
  const [row] = await sql<Row & Record<string, unknown>>(text, [type]);
  return row!;
}

describe("outbox-relay run to Kafka", { concurrency: 2 }, () => {
  test("G2 A5 A16 A2: by environment alone events reach their topics exactly once, with key, bytes and headers", async () => {
    await using kafka = await startKafka();
    await using it = await stage();
    const order = await insert(it, "orders.outbox", "order.placed");
    const invoice = await insert(it, "billing.outbox_events", "invoice.issued");
    const env = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders,billing", KAFKA_BROKERS: kafka.brokers };
    const { code, stderr } = await runCommand(["run", "--once"], env);
    assert.equal(code, 0, stderr);
    for (const [topic, row] of [["order.placed", order] as const, ["invoice.issued", invoice] as const]) {
      const [record, ...more] = await readTopic(kafka.directBrokers, topic);
      assert.deepEqual([record?.key?.toString(), record?.value?.toString(), more], ["key-1", '{"a": 1}', []]);
      assert.equal(headerText(record!, "event-id"), row.id);
      assert.equal(headerText(record!, "correlation-id"), row.correlation_id);
      assert.match(headerText(record!, "created-at") ?? "", /^\d{4}-\d\d-\d\dT.*Z$/);
    }
    const [pipeline] = await it.sql<{ ledgered: string }>(
      "select max(ledgered_batch) as ledgered from outbox_relay.lanes",
    );
    assert.ok(Number(pipeline?.ledgered) > 0, "they went through the ledger");
  });

  test("A4 A18: a broker outage degrades the service, which stays ready, and what waits goes out afterwards", async () => {
    await using kafka = await startKafka();
    await using it = await stage();
    await kafka.createTopic("order.placed");
    await using running = startService(["run"], {
      DATABASE_URL: it.relayUrl,
      OUTBOX_SCHEMAS: "orders",
      OUTBOX_DESTINATION: `kafka://${kafka.brokers}`,
      PORT: String(await freePort()),
    });
    await insert(it, "orders.outbox", "order.placed");
    await until("the first is there", async () => (await readTopic(kafka.directBrokers, "order.placed")).length === 1);
    await running.becomes("healthy");
    await kafka.kill();
    await insert(it, "orders.outbox", "order.placed");
    const down = /"part":"destination","name":"kafka"/;
    await until("health names it", async () => down.test(JSON.stringify((await running.becomes("degraded")).problems)));
    assert.deepEqual([(await running.get("/readyz")).status, (await running.get("/health")).status], [200, 200]);
    await until("the metric tells", async () =>
      /outbox_relay_destination_state\{destination="kafka",state="down"\} 1/.test((await running.get("/metrics")).body),
    );
    await kafka.restart();
    await until("the second is there", async () => (await readTopic(kafka.directBrokers, "order.placed")).length === 2);
    await running.becomes("healthy");
  });

  test("A20: secrets come from files, reach the broker over TLS and never a log; rights that are missing are exit 2", async () => {
    await using kafka = await startSecureKafka();
    await using it = await stage();
    const folder = mkdtempSync(join(tmpdir(), "outbox-relay-secrets-"));
    try {
      writeFileSync(join(folder, "password"), "relay-secret\n");
      const env = {
        DATABASE_URL: it.relayUrl,
        OUTBOX_SCHEMAS: "orders",
        KAFKA_BROKERS: kafka.saslBrokers,
        KAFKA_SASL_MECHANISM: "SCRAM-SHA-512",
        KAFKA_USERNAME: "relay",
        KAFKA_PASSWORD_FILE: join(folder, "password"),
        KAFKA_SSL_CA_FILE: kafka.certificates.authority.certificateFile,
        LOG_LEVEL: "trace",
      };
      await kafka.createTopic("order.placed");
      const refused = await runCommand(["run", "--once"], env);
      assert.equal(refused.code, 2, refused.stderr);
      assert.match(refused.stderr, /DELIVERY=at-least-once/);
      await kafka.allow("User:relay", [
        { operations: ["WRITE", "DESCRIBE"], on: "TOPIC", name: "order.placed" },
        { operations: ["ALL"], on: "TOPIC", name: "outbox-relay.ledger", prefixed: true },
        { operations: ["ALL"], on: "TRANSACTIONAL_ID", name: "outbox-relay", prefixed: true },
        { operations: ["CREATE"], on: "CLUSTER" },
      ]);
      const row = await insert(it, "orders.outbox", "order.placed");
      const { code, stderr, stdout } = await runCommand(["run", "--once"], env);
      assert.equal(code, 0, stderr);
      const [record] = await readTopic(kafka.directBrokers, "order.placed");
      assert.equal(headerText(record!, "event-id"), row.id);
      for (const output of [refused.stderr, refused.stdout, stderr, stdout])
        assert.doesNotMatch(output, /relay-secret/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
