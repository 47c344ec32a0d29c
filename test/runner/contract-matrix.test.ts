import assert from "node:assert/strict";
import { test } from "node:test";
import { ContractMatrix } from "./contract-matrix.ts";

test("the matrix shows rules by destinations, and what does not apply", () => {
  const matrix = new ContractMatrix();
  assert.deepEqual(matrix.lines(), []);
  const file = "src/publishers/nats/nats-contract.test.ts";
  matrix.note(file, "nats publisher: A3 in order", "passed");
  matrix.note(file, "nats publisher: D8 dropped", "failed");
  matrix.note("src/publishers/kafka/kafka-contract.test.ts", "kafka publisher, at least once: A3 in order", "passed");
  matrix.note("src/other.test.ts", "sqs publisher: A3 in order", "passed");
  const [head, order, dropped] = matrix.lines();
  assert.match(head ?? "", /^ +kafka\* {2}nats$/);
  assert.match(order ?? "", /^A3 in order +x {7}x$/);
  assert.match(dropped ?? "", /^D8 dropped +\. {7}!$/);
});
