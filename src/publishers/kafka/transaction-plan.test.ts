import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Message } from "../../core/event.ts";
import { BatchLimits } from "./kafka-config.ts";
import { message } from "./kafka-fixture.test.ts";
import { type Item, measure, recordBytesMax } from "./kafka-records.ts";
import { addNote, planRounds, type TransactionBatch, type TransactionRules } from "./transaction-plan.ts";

const broker = { host: "b", port: 1 };

function itemsOf(messages: readonly Message[]): Item<Message>[] {
  return messages.map((it, index) => ({ index, message: it, contentBytes: measure(it) }));
}

function rules(changes: Partial<TransactionRules> = {}): TransactionRules {
  return {
    limits: new BatchLimits(),
    topicInfo: () => ({ leaders: [broker, broker, broker] }),
    countMax: () => Number.POSITIVE_INFINITY,
    spread: 0,
    ...changes,
  };
}

function noteOf(bytes = 100): TransactionBatch {
  return { topic: "ledger", partition: 5, items: [], bytes };
}

function planTransaction(items: readonly Item<Message>[], note: TransactionBatch, by: TransactionRules) {
  const rounds = planRounds(items, by);
  addNote(rounds, note);
  return rounds;
}

const placeOf = ({ topic, partition }: TransactionBatch) => `${topic}:${partition}`;

test("a key whose events alternate between topics needs one round only", () => {
  const batch = Array.from({ length: 50 }, (_, at) => message(`a${at}`, { topic: at % 2 ? "paid" : "created" }));
  const rounds = planTransaction(itemsOf(batch), noteOf(), rules());
  assert.deepEqual(
    rounds.map((round) => round.map(({ topic, items }) => `${topic} ${items.length}`)),
    [["created 25", "paid 25", "ledger 0"]],
  );
});

test("A3 every message goes once, those of a partition in their order, and the note comes last", () => {
  const parts = fc.record({
    key: fc.constantFrom("a", "b", "c", "-"),
    topic: fc.constantFrom("t", "u"),
    bytes: fc.integer({ min: 0, max: 500_000 }),
  });
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 60 }), fc.integer({ min: 1, max: 50 }), (all, countMax) => {
      const messages = all.map(({ key, topic, bytes }, at) =>
        message(`${key}${at}`, { topic, payload: Buffer.alloc(bytes) }),
      );
      const rounds = planTransaction(itemsOf(messages), noteOf(), rules({ countMax: () => countMax }));
      assert.equal(rounds.at(-1)?.at(-1)?.topic, "ledger");
      const sent = rounds.flat().flatMap(({ items }) => items);
      assert.deepEqual(
        sent.map(({ index }) => index).sort((a, b) => a - b),
        [...messages.keys()],
      );
      for (const round of rounds) assert.equal(new Set(round.map(placeOf)).size, round.length);
      const byPlace = Map.groupBy(rounds.flat(), placeOf);
      for (const batches of byPlace.values()) {
        const order = batches.flatMap(({ items }) => items.map(({ index }) => index));
        assert.deepEqual(
          order,
          order.toSorted((a, b) => a - b),
        );
        for (const { items, bytes } of batches) {
          assert.ok(items.length <= countMax && (items.length <= 1 || bytes <= 900_000));
          assert.ok(bytes >= items.reduce((sum, item) => sum + recordBytesMax(item), 0));
        }
      }
    }),
  );
});

test("messages without a key share one partition, and the next transaction takes another one that has a leader", () => {
  const batch = itemsOf([message("-1"), message("-2"), message("-3")]);
  const topicInfo = () => ({ leaders: [broker, null, broker] });
  const placed = [0, 1, 2, 3].map((spread) => {
    const [round] = planTransaction(batch, noteOf(), rules({ spread, topicInfo }));
    return round!.filter(({ topic }) => topic !== "ledger").map(({ partition, items }) => [partition, items.length]);
  });
  assert.deepEqual(placed, [[[0, 3]], [[2, 3]], [[2, 3]], [[0, 3]]]);
});

test("a note that would make the last request too large goes by itself, and without messages alone", () => {
  const batch = itemsOf([message("a1", { payload: Buffer.alloc(800_000) })]);
  const shapes = [
    planTransaction(batch, noteOf(8_000_000), rules()),
    planTransaction(batch, noteOf(1_000_000), rules()),
    planTransaction([], noteOf(), rules()),
  ].map((rounds) => rounds.map((round) => round.length));
  assert.deepEqual(shapes, [[1, 1], [2], [1]]);
});
