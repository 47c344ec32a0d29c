import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type KafkaCluster, startKafkaCluster } from "../../../test/servers/kafka-cluster.ts";
import { headerText, readTopic } from "../../../test/servers/kafka-reader.ts";
import { until } from "../../../test/servers/until.ts";
import type { Outcome } from "../../core/outcome.ts";
import type { Publisher } from "../../ports/publisher.ts";
import { attempt, message } from "./kafka-fixture.test.ts";
import { kafkaPublisher } from "./kafka-publisher.ts";

const KEYS = ["a", "b", "c", "d", "e", "f"];

let cluster: KafkaCluster;

before(async () => {
  cluster = await startKafkaCluster();
  await cluster.createTopic("first");
  // A node that never gave a producer its number has to ask the controller first, for which a hung one takes half a
  // minute.
  await Promise.all(cluster.brokers.split(",").map((broker) => publishOnce(broker)));
});

async function publishOnce(broker: string): Promise<void> {
  const publisher = kafkaPublisher({ brokers: [broker], delivery: "at-least-once" });
  await until("the node serves producers", async () =>
    isDelivered(await attempt(publisher, [message("a1", { topic: "first" })])),
  );
  await publisher.close();
}

after(() => cluster[Symbol.asyncDispose]());

function isDelivered(outcomes: readonly Outcome[]): boolean {
  return Array.from(outcomes).every((outcome) => outcome?.kind === "delivered");
}

/** Sends each key's events one after another and repeats what failed, as the engine does. */
async function sendUntil(isOver: () => boolean, publisher: Publisher, topic: string) {
  let repeated = 0;
  const counts = KEYS.map(async (key) => {
    let sent = 0;
    while (!isOver()) {
      const batch = [1, 2, 3].map((step) => message(`${key}${sent + step}`, { topic }));
      if (isDelivered(await attempt(publisher, batch))) sent += 3;
      else repeated += 1;
    }
    return sent;
  });
  return { sent: await Promise.all(counts), repeated };
}

async function assertNothingLostOrReordered(topic: string, sent: readonly number[], repeated: number): Promise<void> {
  const expected = KEYS.map((key, at) => Array.from({ length: sent[at]! }, (_, n) => `${key}${n + 1}`));
  // A new leader exposes records only after the other replicas have confirmed them.
  const ids = await until("all that was acknowledged can be read", async () => {
    const records = await readTopic(cluster.directBrokers, topic);
    const found = records.map((record) => headerText(record, "event-id"));
    return expected.flat().every((id) => found.includes(id)) && found;
  });
  for (const [at, key] of KEYS.entries()) {
    const ofKey = ids.filter((id) => id?.replace(/\d+$/, "") === key);
    assert.ok(expected[at]!.length > 0);
    assert.deepEqual([...new Set(ofKey)].slice(0, expected[at]!.length), expected[at]);
    assert.ok(ofKey.length <= expected[at]!.length + 3 + repeated * 3, "only what got no answer may be there twice");
  }
}

/** Sends while `disturb` runs, then compares what is there with what was acknowledged. */
async function assertSurvives(
  topic: string,
  brokers: readonly string[],
  disturb: (publisher: Publisher) => Promise<void>,
) {
  const publisher = kafkaPublisher({ brokers, delivery: "at-least-once", requestTimeoutMs: 1_500 });
  let isOver = false;
  const sending = sendUntil(() => isOver, publisher, topic);
  try {
    await disturb(publisher);
  } finally {
    isOver = true;
    const { sent, repeated } = await sending;
    await publisher.close();
    await assertNothingLostOrReordered(topic, sent, repeated);
  }
}

test("A3 A4 a node that hangs holds back what it leads until another leads it, and loses nothing", async () => {
  await cluster.createTopic("hanging", { partitions: 3 });
  const leader = await cluster.leaderOf("hanging", 0);
  const all = cluster.brokers.split(",");
  // The hung node stands first in the list, so that every search for a broker meets it.
  await assertSurvives("hanging", [all[leader - 1]!, ...all], async (publisher) => {
    await cluster.node(leader).pause();
    await until("everything gets through", async () => {
      const batch = KEYS.map((key) => message(`${key.toUpperCase()}1`, { topic: "hanging" }));
      return isDelivered(await attempt(publisher, batch));
    }).finally(() => cluster.node(leader).resume());
  });
});

test("A3 A4 a leader that goes down in good order costs no event and no order", async () => {
  await cluster.createTopic("moving", { partitions: 3 });
  const leader = await cluster.leaderOf("moving", 0);
  await assertSurvives("moving", cluster.brokers.split(","), async () => {
    await cluster.node(leader).stop();
    await until("another node leads", async () => (await cluster.leaderOf("moving", 0)) !== leader);
  });
});
