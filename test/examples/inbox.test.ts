import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bullmqPublisher } from "../../src/bullmq.ts";
import { httpPublisher } from "../../src/http-destination.ts";
import { createRelay, migrateUp, openDatabase, type Publisher, postgresSource } from "../../src/index.ts";
import { kafkaPublisher } from "../../src/kafka.ts";
import { outboxTableSql } from "../../src/outbox/index.ts";
import { rabbitPublisher } from "../../src/rabbitmq.ts";
import { type ServiceProcess, startService } from "../e2e/service-process.ts";
import { serverOfFile } from "../e2e/service-stage.ts";
import { freePort } from "../servers/free-port.ts";
import { startKafka } from "../servers/kafka.ts";
import { startRabbit } from "../servers/rabbitmq.ts";
import { startRedis } from "../servers/redis.ts";
import { until } from "../servers/until.ts";

const folder = new URL("../../examples/inbox/", import.meta.url);
const server = serverOfFile();
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const ORDERS = ["order-1", "order-2", "order-3"];
let databases = 0;

/** A shop's outbox and the billing service's tables, side by side in one database. */
async function stage() {
  databases += 1;
  const name = `inbox_${databases}`;
  await server().createDatabase(name);
  const url = server().databaseUrl(name);
  const sql = async <Row extends object>(text: string, values: readonly unknown[] = []) =>
    (await server().query<Row>(text, [...values], name)).rows;
  await sql(outboxTableSql("shop.outbox"));
  const start = (program: string, env: Readonly<Record<string, string>>): ServiceProcess =>
    startService([fileURLToPath(new URL(program, folder))], { DATABASE_URL: url, ...env }, process.execPath);
  return { url, sql, start };
}

type Stage = Awaited<ReturnType<typeof stage>>;

/** A relay that delivers every order, and afterwards all of them once more, as after a crash before the mark. */
async function deliverTwice({ sql, url }: Stage, publisher: Publisher): Promise<void> {
  const database = openDatabase({ url });
  await migrateUp(database);
  for (const id of ORDERS) {
    await sql(
      "insert into shop.outbox (id, event_type, aggregate_id, payload) values (gen_random_uuid(), $1, $2, $3)",
      ["order.placed", id, JSON.stringify({ id, total: 30 })],
    );
  }
  for (const round of [1, 2]) {
    const source = postgresSource({ database, table: "shop.outbox" });
    const again = { ...publisher, close: async () => {} };
    await using relay = createRelay({ sources: [source], destinations: { billing: round === 2 ? publisher : again } });
    await relay.drain();
    if (round === 1) await sql("update shop.outbox set published_at = null");
  }
  await database.close();
}

/** Each order once as new, and once as a message that was here before; one invoice for each. */
async function assertBilledOnce({ sql }: Stage, consumer: ServiceProcess): Promise<void> {
  const said = (what: string) =>
    consumer
      .stdout()
      .split("\n")
      .filter((line) => line.endsWith(what)).length;
  await until("all have arrived twice", () => said("was here before") === 3);
  assert.equal(said("invoice written"), 3, consumer.stdout());
  assert.match(consumer.stdout(), /^order\.placed of order-1: invoice written$/m);
  assert.deepEqual(
    await sql("select order_id, total from billing.invoices order by 1"),
    ORDERS.map((order_id) => ({ order_id, total: 30 })),
  );
  consumer.kill("SIGTERM");
  const { code, stderr } = await consumer.ended;
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
}

const isReady = (consumer: ServiceProcess) =>
  until("the consumer is ready", () => consumer.stdout().startsWith("ready\n"));

describe("each event has one effect, though the relay sends it twice", () => {
  test("F5 H4 from Kafka", async () => {
    await using kafka = await startKafka();
    await kafka.createTopic("order.placed");
    const shop = await stage();
    await using consumer = shop.start("kafka-consumer.ts", { KAFKA_BROKERS: kafka.brokers });
    await isReady(consumer);
    await deliverTwice(shop, kafkaPublisher({ brokers: [kafka.brokers], delivery: "at-least-once" }));
    await assertBilledOnce(shop, consumer);
  });

  test("F5 H4 from RabbitMQ", async () => {
    await using rabbit = await startRabbit();
    const shop = await stage();
    await using consumer = shop.start("rabbitmq-consumer.ts", { AMQP_URL: rabbit.url });
    await isReady(consumer);
    await deliverTwice(shop, rabbitPublisher({ hosts: [`127.0.0.1:${rabbit.port}`], exchange: "shop.events" }));
    await assertBilledOnce(shop, consumer);
  });

  test("F5 H4 from BullMQ, whose finished jobs are removed", async () => {
    await using redis = await startRedis();
    const shop = await stage();
    await using consumer = shop.start("bullmq-worker.ts", { REDIS_URL: redis.url });
    await isReady(consumer);
    const hosts = [`127.0.0.1:${redis.port}`];
    await deliverTwice(shop, bullmqPublisher({ hosts, queue: "billing", removeOnComplete: true }));
    await assertBilledOnce(shop, consumer);
  });

  test("F5 H4 by signed requests; one that nobody signed is refused", async () => {
    const shop = await stage();
    const port = await freePort();
    const env = { HTTP_SIGNING_SECRET: SECRET, PORT: String(port) };
    await using consumer = shop.start("webhook-receiver.ts", env);
    await isReady(consumer);
    const url = `http://127.0.0.1:${port}/`;
    const forged = await fetch(url, {
      method: "POST",
      headers: { "event-id": "1" },
      body: '{"id":"order-9","total":1}',
    });
    assert.equal(forged.status, 401);
    await deliverTwice(shop, httpPublisher({ url, signingSecrets: [SECRET] }));
    await assertBilledOnce(shop, consumer);
  });
});
