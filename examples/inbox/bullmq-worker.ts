import { Worker } from "bullmq";
import { fromBullmq } from "../../src/inbox/index.ts"; // in your project: "outbox-relay/inbox"
import { bill, createTables, pool } from "./billing.ts";

await createTables();
// BullMQ knows a job for as long as it is kept; the inbox knows the event afterwards too.
const connection = { url: process.env.REDIS_URL ?? "redis://127.0.0.1:6379/0" };
const worker = new Worker("billing", async (job) => await bill(fromBullmq(job)), { connection });
await worker.waitUntilReady();
console.log("ready");
process.once("SIGTERM", async () => {
  await worker.close();
  await pool.end();
});
