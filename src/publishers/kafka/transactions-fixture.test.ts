import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { KafkaServer } from "../../../test/servers/kafka.ts";
import { headerText, readTopic } from "../../../test/servers/kafka-reader.ts";
import { until } from "../../../test/servers/until.ts";
import type { Message } from "../../core/event.ts";
import type { Outcome } from "../../core/outcome.ts";
import type { CommittedBatch, LaneAddress, LaneTransactions } from "../../ports/transactions.ts";
import { loadKafka, openClient } from "./kafka-client.ts";
import { type KafkaPublisherOptions, type KafkaSettings, kafkaSettings } from "./kafka-config.ts";
import { message, shown } from "./kafka-fixture.test.ts";
import { kafkaTransactions } from "./kafka-transactions.ts";
import type { KafkaAccess } from "./ledger-metadata.ts";

let services = 0;

/** One service with a topic, a ledger and a lane of its own on a broker that is shared by the tests of a file. */
export async function openService(
  kafka: Pick<KafkaServer, "brokers" | "directBrokers" | "createTopic">,
  options: Partial<KafkaPublisherOptions> = {},
) {
  const service = options.service ?? `service-${++services}`;
  const topic = `${service}.events`;
  await kafka.createTopic(topic, { partitions: 3 });
  const settings: KafkaSettings = kafkaSettings({ brokers: kafka.brokers.split(","), service, ...options });
  const transactions = kafkaTransactions(settings);
  const lane: LaneAddress = { database: randomUUID(), pipeline: "orders", lane: 0, slot: 0 };
  return {
    topic,
    settings,
    transactions,
    lane,
    /** `messages("a1 a2 b1")`, to the service's topic. */
    messages: (ids: string): Message[] => ids.split(" ").map((id) => message(id, { topic })),
    fence: (changes: Partial<LaneAddress> = {}) => transactions.fence({ ...lane, ...changes }, unaborted()),
    /** The ids that a reader of committed transactions sees, partition by partition. */
    async visible(): Promise<string[]> {
      return (await readTopic(kafka.directBrokers, topic)).map((record) => headerText(record, "event-id") ?? "");
    },
    /** A commit is heard of a moment later. */
    async assertVisible(...ids: readonly string[]): Promise<void> {
      const wanted = ids.toSorted().join();
      let seen: string[] = [];
      const isThere = async () => {
        seen = await this.visible();
        return seen.toSorted().join() === wanted;
      };
      await until("the committed messages are visible", isThere, 10_000).catch(() => {});
      assert.deepEqual(seen.toSorted(), ids.toSorted());
    },
    [Symbol.asyncDispose]: () => transactions.close(),
  };
}

/** Connections of one's own, for requests by hand. */
export async function accessFor(settings: KafkaSettings): Promise<KafkaAccess> {
  const kafka = await loadKafka();
  return { kafka, client: openClient(kafka, settings), settings };
}

export function unaborted(): AbortSignal {
  return new AbortController().signal;
}

export function send(lane: LaneTransactions, batch: bigint, messages: readonly Message[]): Promise<readonly Outcome[]> {
  return lane.send(messages, noteOf(batch, messages), unaborted());
}

export function noteOf(batch: bigint, messages: readonly Message[]): CommittedBatch {
  return { batch, ids: messages.map(({ event }) => event.id) };
}

/** Sends and leaves the transaction open. */
export async function open(lane: LaneTransactions, batch: bigint, messages: readonly Message[]): Promise<void> {
  assert.deepEqual([...new Set(shown(await send(lane, batch, messages)))], ["delivered"]);
}

export async function commit(lane: LaneTransactions, batch: bigint, messages: readonly Message[]): Promise<void> {
  await open(lane, batch, messages);
  await lane.commit(unaborted());
}

/** The numbers of the batches in the ledger above this one, or the last. */
export async function ledger(lane: LaneTransactions, after = 0n): Promise<bigint[]> {
  return (await lane.lastCommitted(after, unaborted())).map(({ batch }) => batch);
}

test("a note names the events of its messages", () => {
  assert.deepEqual(noteOf(3n, [message("a1"), message("-2")]), { batch: 3n, ids: ["a1", "-2"] });
});
