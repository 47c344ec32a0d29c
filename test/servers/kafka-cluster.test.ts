import assert from "node:assert/strict";
import { test } from "node:test";
import { startKafkaCluster } from "./kafka-cluster.ts";
import { readTopic } from "./kafka-reader.ts";
import { writeTopic } from "./kafka-writer.ts";

test("a cluster goes on without any one of its nodes, and refuses what only one would keep", async () => {
  await using cluster = await startKafkaCluster();
  await cluster.createTopic("t");
  const write = (text: string, timeoutMs = 30_000) =>
    writeTopic(cluster.brokers, "t", [text], { "message.timeout.ms": String(timeoutMs) });
  const first = await cluster.leaderOf("t");
  await write("with three");
  await cluster.node(first).kill();
  await write("without the leader");

  const second = await cluster.leaderOf("t");
  assert.notEqual(second, first);
  const [third = 0] = [1, 2, 3].filter((nodeId) => nodeId !== first && nodeId !== second);
  await cluster.node(third).kill();
  await assert.rejects(write("with one", 2_000));

  await Promise.all([cluster.node(first).restart(), cluster.node(third).restart()]);
  await cluster.inSync("t");
  await cluster.node(second).kill();
  await write("without the second leader");
  assert.ok([first, third].includes(await cluster.coordinatorOf("someone")));
  const values = (await readTopic(cluster.directBrokers, "t")).map(({ value }) => String(value));
  // The refused write may have reached one log. The writer was not told that it will stay, that is all.
  assert.deepEqual(
    values.filter((value) => value !== "with one"),
    ["with three", "without the leader", "without the second leader"],
  );
});
