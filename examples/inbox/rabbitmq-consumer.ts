import { connect } from "amqplib";
import { fromRabbitmq } from "../../src/inbox/index.ts"; // in your project: "outbox-relay/inbox"
import { bill, createTables, pool } from "./billing.ts";

await createTables();
const connection = await connect(process.env.AMQP_URL ?? "amqp://guest:guest@127.0.0.1:5672");
const channel = await connection.createChannel();
await channel.assertExchange("shop.events", "topic");
await channel.assertQueue("billing", { arguments: { "x-queue-type": "quorum" } });
await channel.bindQueue("billing", "shop.events", "order.#");
await channel.prefetch(1);
const { consumerTag } = await channel.consume("billing", async (message) => {
  if (message === null) return;
  try {
    await bill(fromRabbitmq(message));
    channel.ack(message);
  } catch (error) {
    console.error(error);
    channel.nack(message);
  }
});
console.log("ready");
process.once("SIGTERM", async () => {
  await channel.cancel(consumerTag);
  await connection.close();
  await pool.end();
});
