import assert from "node:assert/strict";
import { test } from "node:test";
import { DeliveredBuffer } from "./delivered-buffer.ts";

test("without a ledger each settle makes a batch of the events that it takes", () => {
  const pile = new DeliveredBuffer();
  pile.add(["1", "2", "3"]);
  assert.deepEqual(pile.take(2, 5n), { batch: 6n, delivered: ["1", "2"], ledger: "none" });
  assert.deepEqual(pile.take(2, 6n), { batch: 7n, delivered: ["3"], ledger: "none" });
  assert.deepEqual(pile.take(2, 7n), { batch: 7n, delivered: [], ledger: "none" });
});

test("A2 with a ledger only whole batches are settled, joined while they fit", () => {
  const pile = new DeliveredBuffer();
  for (const [batch, ids] of [
    [8n, ["1", "2"]],
    [9n, ["3"]],
    [10n, ["4", "5", "6"]],
  ] as const) {
    pile.add(ids);
    pile.endBatch(batch, "batch");
  }
  assert.deepEqual(pile.take(3, 7n), { batch: 9n, delivered: ["1", "2", "3"], ledger: "batch" });
  assert.deepEqual(pile.take(1, 9n), { batch: 10n, delivered: ["4", "5", "6"], ledger: "batch" });
  assert.ok(pile.isEmpty);
});

test("A2 a healed batch is not joined with a batch of this owner", () => {
  const pile = new DeliveredBuffer();
  pile.add(["1"]);
  pile.endBatch(1n, "heal");
  pile.add(["2"]);
  pile.endBatch(2n, "batch");
  assert.deepEqual(pile.take(10, 0n), { batch: 1n, delivered: ["1"], ledger: "heal" });
  assert.deepEqual(pile.take(10, 1n), { batch: 2n, delivered: ["2"], ledger: "batch" });
});
