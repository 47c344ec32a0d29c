import { Consumer } from "@platformatic/kafka";
import { fromKafka } from "../../src/inbox/index.ts"; // in your project: "outbox-relay/inbox"
import { bill, createTables, pool } from "./billing.ts";

await createTables();
const bootstrapBrokers = (process.env.KAFKA_BROKERS ?? "127.0.0.1:9092").split(",");
const consumer = new Consumer({ groupId: "billing", clientId: "billing", bootstrapBrokers });
// The offset is committed after the invoice: what a crash leaves in between comes again, and has no effect.
const records = await consumer.consume({ topics: ["order.placed"], mode: "earliest", autocommit: false });
process.once("SIGTERM", () => records.close());
console.log("ready");
for await (const record of records) {
  await bill(fromKafka(record));
  await record.commit();
}
await consumer.close();
await pool.end();
