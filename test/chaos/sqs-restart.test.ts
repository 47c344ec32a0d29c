import assert from "node:assert/strict";
import { test } from "node:test";
import { describeVerdict } from "../e2e/checker.ts";
import { SQS_ENVIRONMENT, startElasticMq } from "../servers/elasticmq.ts";
import { startTcpProxy } from "../servers/tcp-proxy.ts";
import { proveBrokerRestart } from "./broker-restart.ts";

// The server has its queues in memory only and would come back without them. So the way to it is cut instead, with
// requests in the middle of it, and a FIFO queue keeps what it had taken.
test("A2 A3 A4 SQS FIFO cut off and back amid 3,000 events of 200 keys: none lost, none doubled, all in order", async () => {
  await using elasticMq = await startElasticMq();
  await using proxy = await startTcpProxy(elasticMq.port);
  const queueUrl = await elasticMq.createQueue("orders.fifo");
  const verdict = await proveBrokerRestart({
    destination: `sqs://eu-central-1/orders.fifo?endpoint=http://127.0.0.1:${proxy.port}`,
    env: SQS_ENVIRONMENT,
    async kill() {
      proxy.refuse(true);
      proxy.cut();
    },
    restart: async () => proxy.refuse(false),
    arrived: async () =>
      (await elasticMq.drain(queueUrl)).map(({ Body = "", MessageAttributes = {} }) => ({
        id: MessageAttributes["event-id"]?.StringValue ?? "",
        key: MessageAttributes["partition-key"]?.StringValue ?? null,
        payload: Buffer.from(Body),
      })),
  });
  const { corrupt, duplicates, inversions, lost, unmarked } = verdict;
  assert.deepEqual(
    { corrupt, inversions, lost, unmarked, duplicates },
    { corrupt: [], inversions: [], lost: [], unmarked: [], duplicates: 0 },
    describeVerdict(verdict),
  );
});
