// What BullMQ alone does with the same jobs, in a process of its own. Arguments: the port of Redis, how many jobs.
// Prints the milliseconds from the first batch to the answer to the last.
import { Queue } from "bullmq";
import { BATCH, jobAt, queueAt } from "./bench-requests.ts";

const [port, count] = process.argv.slice(2).map(Number) as [number, number];
const queue = new Queue(queueAt(0), { connection: { host: "127.0.0.1", port } });
await queue.waitUntilReady();
const startedMs = performance.now();
for (let from = 0; from < count; from += BATCH) {
  await queue.addBulk(Array.from({ length: Math.min(BATCH, count - from) }, (_, index) => jobAt(from + index)));
}
process.stdout.write(String(performance.now() - startedMs));
await queue.close();
