import assert from "node:assert/strict";
import { test } from "node:test";
import { describeVerdict } from "../e2e/checker.ts";
import { startRabbit } from "../servers/rabbitmq.ts";
import { overRabbit, takeAll } from "../servers/rabbitmq-reader.ts";
import { until } from "../servers/until.ts";
import { proveBrokerRestart } from "./broker-restart.ts";

const EXCHANGE = "events";
const QUEUE = "everything";
/** One event of each key is on its way at a time. */
const IN_FLIGHT_MAX = 200;

test("A2 A3 A4 C3 RabbitMQ killed and restarted amid 3,000 events of 200 keys: none lost, first deliveries in order", async (t) => {
  await using rabbit = await startRabbit();
  await overRabbit(rabbit.url, async (channel) => {
    await channel.assertExchange(EXCHANGE, "topic", { durable: true });
    await channel.assertQueue(QUEUE, { durable: true, arguments: { "x-queue-type": "quorum" } });
    await channel.bindQueue(QUEUE, EXCHANGE, "#");
  });
  const declaredMs = performance.now();
  const verdict = await proveBrokerRestart({
    destination: `${rabbit.url}/?exchange=${EXCHANGE}`,
    async kill() {
      // A quorum queue that is killed right after its birth is broken for good.
      await until("the queue is on disk", () => performance.now() - declaredMs > 2_000);
      await rabbit.kill();
    },
    restart: () => rabbit.restart(),
    arrived: async () =>
      (await takeAll(rabbit.url, QUEUE)).map(({ content, properties }) => ({
        id: properties.messageId,
        key: properties.headers?.["partition-key"] ?? null,
        payload: content,
      })),
  });
  const { corrupt, duplicates, inversions, lost, unmarked } = verdict;
  assert.deepEqual(
    { corrupt, inversions, lost, unmarked },
    { corrupt: [], inversions: [], lost: [], unmarked: [] },
    describeVerdict(verdict),
  );
  t.diagnostic(`${duplicates} duplicates`);
  assert.ok(duplicates <= IN_FLIGHT_MAX, `${duplicates} duplicates are more than what was in flight`);
});
