import assert from "node:assert/strict";
import { test } from "node:test";
import { describeVerdict } from "../e2e/checker.ts";
import { startKafka } from "../servers/kafka.ts";
import { headerText, readTopic } from "../servers/kafka-reader.ts";
import { proveBrokerRestart, RESTART_TYPE } from "./broker-restart.ts";

test("A2 A3 A4 Kafka killed and restarted amid 3,000 events of 200 keys: none lost, none doubled, all in order", async () => {
  await using kafka = await startKafka();
  await kafka.createTopic(RESTART_TYPE, { partitions: 3 });
  const verdict = await proveBrokerRestart({
    destination: `kafka://${kafka.brokers}`,
    kill: () => kafka.kill(),
    restart: () => kafka.restart(),
    arrived: async () =>
      (await readTopic(kafka.directBrokers, RESTART_TYPE)).map((record) => ({
        id: headerText(record, "event-id") ?? "",
        key: record.key?.toString() ?? null,
        payload: record.value ?? Buffer.alloc(0),
      })),
  });
  const { corrupt, duplicates, inversions, lost, unmarked } = verdict;
  assert.deepEqual(
    { corrupt, inversions, lost, unmarked, duplicates },
    { corrupt: [], inversions: [], lost: [], unmarked: [], duplicates: 0 },
    describeVerdict(verdict),
  );
});
