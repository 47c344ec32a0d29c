import assert from "node:assert/strict";
import { test } from "node:test";
import { isRelayError } from "../core/errors.ts";
import { ADOPTED } from "../ports/queue-store.ts";
import { unsettledBatches } from "./ledger-check.ts";

const ledgerOf = (...batches: number[]) => batches.map((batch) => ({ batch: BigInt(batch), ids: [`e${batch}`] }));

function numbers(settled: number, ledgered: number | bigint, ...batches: number[]): number[] {
  const lane = { settledBatch: BigInt(settled), ledgeredBatch: BigInt(ledgered) };
  return unsettledBatches("lane 0 of p", lane, ledgerOf(...batches)).map(({ batch }) => Number(batch));
}

const FINE: readonly [
  why: string,
  settled: number,
  ledgered: number | bigint,
  ledger: number[],
  unsettled: number[],
][] = [
  ["a lane that never delivered", 0, 0, [], []],
  ["nothing is missing", 7, 7, [7], []],
  ["two settles were lost", 7, 7, [8, 9], [8, 9]],
  ["the first batch ever was not settled", 0, 0, [1], [1]],
  ["delivered at least once in between, so that the numbers moved on without the ledger", 50, 7, [7], []],
  ["and once more exactly once after that", 50, 7, [51], [51]],
  ["an operator adopted a lane without a ledger", 9, ADOPTED, [], []],
  ["an operator adopted a lane whose ledger does not reach back", 2, ADOPTED, [40, 41], [40, 41]],
];

for (const [why, settled, ledgered, ledger, unsettled] of FINE) {
  test(`A2 the ledger shows what was not settled: ${why}`, () => {
    assert.deepEqual(numbers(settled, ledgered, ...ledger), unsettled);
  });
}

const CONTRADICTIONS: readonly [why: string, settled: number, ledgered: number, ledger: number[], text: RegExp][] = [
  ["the ledger was deleted", 9, 9, [], /ledger is empty, but the database settled batch 9 of lane 0 of p/],
  ["the ledger is behind", 9, 9, [5], /ends with batch 5, but the database settled batch 9/],
  ["the database was restored to long ago", 2, 2, [40, 41], /37 of the batches 3 to 41 of lane 0 of p are no longer/],
];

for (const [why, settled, ledgered, ledger, text] of CONTRADICTIONS) {
  test(`A2 the lane halts when ledger and database contradict each other: ${why}`, () => {
    assert.throws(
      () => numbers(settled, ledgered, ...ledger),
      (error) =>
        isRelayError(error, "LEDGER_GAP") && text.test(error.message) && /outbox-relay adopt/.test(error.message),
    );
  });
}
