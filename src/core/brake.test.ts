import assert from "node:assert/strict";
import { test } from "node:test";
import { Brake, fingerprintOf } from "./brake.ts";

let events = 0;

/** The result of each failure, each of another event. */
function pulls(brake: Brake, reasons: readonly string[]): boolean[] {
  return reasons.map((reason) => {
    events += 1;
    return brake.failed(`e${events}`, reason);
  });
}

test("the limit of failures in a row with the same error pulls the brake, exactly once", () => {
  assert.deepEqual(pulls(new Brake(3), ["no", "no", "no", "no"]), [false, false, true, false]);
});

test("a success in between resets the count", () => {
  const brake = new Brake(2);
  assert.deepEqual(pulls(brake, ["no"]), [false]);
  brake.succeeded();
  assert.deepEqual(pulls(brake, ["no", "no"]), [false, true]);
});

test("another error resets the count", () => {
  assert.deepEqual(pulls(new Brake(2), ["no", "never", "no", "no"]), [false, false, false, true]);
});

test("one event that fails repeatedly does not pull the brake for all", () => {
  const brake = new Brake(2);
  const same = () => brake.failed("stubborn", "no");
  assert.deepEqual([same(), same(), same()], [false, false, false]);
  assert.deepEqual(pulls(brake, ["no"]), [true]);
});

test("errors that differ only in ids, numbers and quoted values are one error", () => {
  const id = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
  assert.equal(fingerprintOf(`event ${id} of "order-7" took 12 ms`), fingerprintOf("event # of 'x' took 9 ms"));
  assert.notEqual(fingerprintOf("timeout after 3 s"), fingerprintOf("refused after 3 s"));
});

test("a reason of any length costs little", () => {
  assert.ok(fingerprintOf("'".repeat(1_000_000)).length <= 300);
});
