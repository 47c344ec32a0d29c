import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Message } from "../../core/event.ts";
import { BatchLimits } from "./kafka-config.ts";
import { message } from "./kafka-fixture.test.ts";
import { type PlanRules, planRound } from "./kafka-plan.ts";
import { type Item, measure } from "./kafka-records.ts";

const broker = { host: "b", port: 1 };
const PARTITIONS = 4;

function itemsOf(messages: readonly Message[]): Item<Message>[] {
  return messages.map((it, index) => ({ index, message: it, contentBytes: measure(it) }));
}

function rules(changes: Partial<PlanRules> = {}): PlanRules {
  return {
    limits: new BatchLimits(),
    topicInfo: () => ({ leaders: Array(PARTITIONS).fill(broker) }),
    failedKeys: new Map(),
    countMax: () => Number.POSITIVE_INFINITY,
    spread: 0,
    ...changes,
  };
}

function idsOf(items: readonly Item<Message>[]): string {
  return items.map(({ message: { event } }) => event.id).join(" ");
}

test("one batch per partition, each key whole and in its order", () => {
  const batch = Array.from({ length: 60 }, (_, at) => message(`${"abcdef"[at % 6]}${at}`));
  const round = planRound(itemsOf(batch), rules());
  assert.deepEqual([round.later, round.skipped], [[], []]);
  assert.equal(new Set(round.batches.map(({ partition }) => partition)).size, round.batches.length);
  assert.equal(
    round.batches.reduce((sum, { items }) => sum + items.length, 0),
    60,
  );
});

test("A3 a key that changes its topic waits until its earlier message is through, and so does what follows it", () => {
  const batch = [
    message("a1", { topic: "x" }),
    message("a2", { topic: "y" }),
    message("a3", { topic: "x" }),
    message("b1", { topic: "y" }),
  ];
  const first = planRound(itemsOf(batch), rules());
  assert.equal(first.batches.map(({ topic, items }) => `${topic}: ${idsOf(items)}`).join(", "), "x: a1, y: b1");
  assert.equal(idsOf(first.later), "a2 a3");
  assert.equal(idsOf(planRound(first.later, rules()).later), "a3");
});

test("A3 a key that a route sends under different keys keeps its order", () => {
  const batch = Array.from({ length: 8 }, (_, at) => message(`a${at}`, { key: `other-${at}` }));
  let items: readonly Item<Message>[] = itemsOf(batch);
  const sent: string[] = [];
  while (items.length > 0) {
    const round = planRound(items, rules());
    assert.equal(round.batches.length, 1, "everything of the key is in one partition per round");
    sent.push(idsOf(round.batches[0]!.items));
    items = round.later;
  }
  assert.equal(sent.join(" "), idsOf(itemsOf(batch)));
});

test("a batch holds no more than its limit, unless a single message is larger", () => {
  const limits = new BatchLimits();
  limits.refused("orders", 20_000);
  const large = message("a1", { payload: Buffer.alloc(50_000) });
  const small = Array.from({ length: 30 }, (_, at) => message(`a${at + 2}`, { payload: Buffer.alloc(1_000) }));
  const first = planRound(itemsOf([large, ...small]), rules({ limits }));
  assert.equal(first.batches.map(({ items }) => idsOf(items)).join(), "a1");
  const second = planRound(first.later, rules({ limits }));
  assert.equal(second.batches[0]!.items.length, 9);
  assert.ok(second.batches[0]!.bytes <= 10_000);
});

test("a learned limit only ever shrinks, and belongs to its topic", () => {
  const limits = new BatchLimits();
  limits.refused("orders", 20_000);
  limits.refused("orders", 900_000);
  assert.deepEqual([limits.of("orders"), limits.of("others")], [10_000, 900_000]);
});

test("F2 behind a failed message of its key nothing is sent, in front of it everything", () => {
  const batch = [message("a1"), message("a2"), message("b1")];
  const round = planRound(itemsOf(batch), rules({ failedKeys: new Map([["a", 0]]) }));
  const sent = round.batches.flatMap(({ items }) => items);
  assert.deepEqual([idsOf(round.skipped), idsOf(sent)], ["a2", "a1 b1"]);
});

test("messages without a key share a partition that has a leader, another one at each publish", () => {
  const topicInfo = () => ({ leaders: [broker, null, broker] });
  const partitions = [0, 1, 2, 3].map((spread) => {
    const round = planRound(itemsOf([message("-1"), message("-2")]), rules({ spread, topicInfo }));
    assert.equal(round.batches.length, 1);
    return round.batches[0]!.partition;
  });
  assert.deepEqual(partitions, [0, 2, 2, 0]);
});

test("a topic of which nothing is known holds its own messages back, and later ones of their keys", () => {
  const batch = [message("a1", { topic: "new" }), message("a2"), message("b1"), message("-1", { topic: "new" })];
  const topicInfo = (topic: string) => (topic === "new" ? null : { leaders: [broker] });
  const round = planRound(itemsOf(batch), rules({ topicInfo }));
  assert.deepEqual([round.batches.map(({ items }) => idsOf(items)), idsOf(round.later)], [["b1"], "a1 a2 -1"]);
});

test("A3 whatever the limits, the rounds bring every key's messages in their order and each of them once", () => {
  const name = fc.tuple(
    fc.constantFrom("a", "b", "c", "d", "-"),
    fc.constantFrom("x", "y"),
    fc.integer({ min: 0, max: 3_000 }),
  );
  fc.assert(
    fc.property(fc.array(name, { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), (names, count) => {
      const batch = names.map(([key, topic, bytes], at) =>
        message(`${key}${at}`, { topic, payload: Buffer.alloc(bytes) }),
      );
      const limits = new BatchLimits();
      limits.refused("x", 5_000);
      let items: readonly Item<Message>[] = itemsOf(batch);
      const sent = new Map<string | null, string[]>();
      for (let left = batch.length; items.length > 0; left--) {
        assert.ok(left > 0, "every round sends something");
        const round = planRound(items, rules({ limits, countMax: () => count }));
        for (const { items: planned } of round.batches) {
          for (const { message: it } of planned)
            sent.set(it.event.key, [...(sent.get(it.event.key) ?? []), it.event.id]);
        }
        items = round.later;
      }
      for (const key of ["a", "b", "c", "d"]) {
        const expected = batch.filter(({ event }) => event.key === key).map(({ event }) => event.id);
        assert.deepEqual(sent.get(key) ?? [], expected);
      }
      assert.equal((sent.get(null) ?? []).length, batch.filter(({ event }) => event.key === null).length);
    }),
  );
});
